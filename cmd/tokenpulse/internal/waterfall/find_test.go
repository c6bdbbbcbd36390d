// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func idOf(t *testing.T, text string) ID {
	t.Helper()
	id, err := ParseID(text)
	require.NoError(t, err)
	return id
}

// batchOf returns a batch of spans by trace and span ID.
func batchOf(ids ...string) ptrace.Traces {
	batch, spans := trace()
	for _, id := range ids {
		trace, span, _ := strings.Cut(id, "/")
		s := add(spans, 0, 0, span, 0, 1)
		s.SetTraceID(pcommon.TraceID([]byte(trace + strings.Repeat("\x00", 16-len(trace)))))
		s.SetSpanID(pcommon.SpanID([]byte(span + strings.Repeat("\x00", 8-len(span)))))
	}
	return batch
}

// find returns the names of the spans that a Finder keeps.
func find(t *testing.T, f *Finder, batches ...ptrace.Traces) (found []string, err error) {
	t.Helper()
	for _, batch := range batches {
		if err := f.Add(batch); err != nil {
			return nil, err
		}
	}
	spans, err := f.Found()
	for _, resource := range spans.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				found = append(found, s.Name())
			}
		}
	}
	return found, err
}

func TestFinder_KeepsTheSpansOfOneTrace(t *testing.T) {
	// "ABCDE" is 4142434445 in hexadecimal.
	batches := []ptrace.Traces{batchOf("ABCDE/s1", "XBCDE/s2", "ABCDE/s3"), batchOf("XBCDE/s4"), batchOf("ABCDE/s5", "XYZ/s6")}
	for _, id := range []string{"414243", "4142434", "41424344", "4142434445" + strings.Repeat("0", 22), strings.ToUpper("4142434445")} {
		f := NewFinder(idOf(t, id))
		found, err := find(t, f, batches...)
		require.NoError(t, err)
		require.Equal(t, []string{"s1", "s3", "s5"}, found, id)
		require.Nil(t, f.Again())
	}
}

// The spans that come before the one with the ID are those of any trace.
func TestFinder_SpanIDNeedsASecondLook(t *testing.T) {
	batches := []ptrace.Traces{batchOf("ABCDE/s1"), batchOf("ABCDE/find-me", "XBCDE/s2"), batchOf("ABCDE/s3")}
	for _, id := range []string{"66696e642d6d65", "66696e642d6d6500", "66696e6"} {
		f := NewFinder(idOf(t, id))
		_, err := find(t, f, batches...)
		require.NoError(t, err)
		require.NotNil(t, f.Again())
		found, err := find(t, f.Again(), batches...)
		require.NoError(t, err)
		require.Equal(t, []string{"s1", "find-me", "s3"}, found)
		require.EqualError(t, f.ReadOnce(), id+" is the ID of a span, and standard input or a pipe can be read only once; "+
			"give the ID of its trace, 41424344450000000000000000000000")
	}
}

func TestFinder_NamesTheTracesOfAnIDThatIsNotUnique(t *testing.T) {
	for _, batch := range []ptrace.Traces{batchOf("ABCDE/s1", "ABCXX/s1"), batchOf("ABCDE/s1", "XX/ABC"), batchOf("XX/ABC", "ABCDE/s1"), batchOf("XX/ABC", "YY/ABC")} {
		_, err := find(t, NewFinder(idOf(t, "414243")), batch)
		require.ErrorContains(t, err, "the ID 414243 is not unique: traces ")
		require.ErrorContains(t, err, "; give more digits, or one of these")
	}
}

func TestFinder_SaysThatNoSpanHasTheID(t *testing.T) {
	for _, id := range []string{"414244", "4142434445464748494a", "000000"} { // spans without a trace have zeros
		_, err := find(t, NewFinder(idOf(t, id)), batchOf("ABCDE/s1", "/s2"))
		require.EqualError(t, err, "no span has the trace or span ID "+id+"; `tokenpulse slowest` lists IDs")
	}
}

func TestFinder_CountsRepeatedSpans(t *testing.T) {
	f := NewFinder(idOf(t, "414243"))
	found, err := find(t, f, batchOf("ABCDE/s1", "ABCDE/s2"), batchOf("ABCDE/s2"))
	require.NoError(t, err)
	require.Equal(t, []string{"s1", "s2"}, found)
	require.Equal(t, int64(1), f.Repeated)
}

func TestFinder_LimitsSpans(t *testing.T) {
	f := NewFinder(idOf(t, "abcdef"))
	batch, spans := trace()
	for n := range maxSpans + 7 {
		add(spans, 1, 0, "s", n, n+1)
	}
	found, err := find(t, f, batch)
	require.NoError(t, err)
	require.Len(t, found, maxSpans)
	require.Equal(t, int64(7), f.Left)
}

// Spans and resources hold texts of any length.
func TestFinder_LimitsBytes(t *testing.T) {
	const size = 1 << 20
	for _, ofResource := range []bool{false, true} {
		f := NewFinder(idOf(t, "abcdef"))
		for n := range 100 {
			batch, spans := trace()
			s := add(spans, 1, 0, "s", n, n+1)
			own := s.Attributes()
			if ofResource {
				own = batch.ResourceSpans().At(0).Resource().Attributes()
			}
			own.PutStr("prompt", strings.Repeat("x", size))
			require.NoError(t, f.Add(batch))
		}
		require.InDelta(t, maxBytes, f.bytes, 2*size)
		require.Equal(t, int64(100), f.Left+int64(len(f.seen)))
		require.GreaterOrEqual(t, f.Left, int64(100-maxBytes/size))
	}
}

func TestParseID_RejectsWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "abcde", "xyzxyz", "4142-4344", "0x414243", traceID + "0"} {
		_, err := ParseID(text)
		require.EqualError(t, err, `"`+text+`" is no ID; give a trace or span ID in hexadecimal, or at least its first 6 digits`)
	}
}
