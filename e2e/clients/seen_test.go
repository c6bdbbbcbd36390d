// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
)

// clockStep is the resolution in milliseconds of the clocks of some libraries.
const clockStep = 1

// seen is one model call: the server's record, and the span before and after the
// Collector.
type seen struct {
	library
	call    string
	served  served
	sent    ptrace.Span
	derived ptrace.Span
}

func (s seen) require(t *testing.T) {
	s.requireUntouched(t)
	attributes := s.derived.Attributes()
	require.Equal(t, s.source, otlpfile.Text(t, attributes, "tokenpulse.source"))
	require.Equal(t, "client", otlpfile.Text(t, attributes, "tokenpulse.vantage"))
	require.InDelta(t, s.duration(), otlpfile.Milliseconds(t, attributes, "tokenpulse.request.duration"), 1e-6)
	if s.call != "aborted" { // which no library reports
		require.Equal(t, "success", otlpfile.Text(t, attributes, "tokenpulse.outcome"))
	}
	s.requireUsage(t)
	s.requireFirstToken(t)
	s.requirePace(t)
	s.requireGaps(t)
}

// requireUntouched checks that the library's attributes are unchanged.
func (s seen) requireUntouched(t *testing.T) {
	t.Helper()
	derived := s.derived.Attributes().AsRaw()
	for name, value := range s.sent.Attributes().AsRaw() {
		require.Equal(t, value, derived[name], name)
	}
}

func (s seen) requireUsage(t *testing.T) {
	t.Helper()
	if !s.served.reportedUsage() && s.countsTokens {
		return
	}
	for name, want := range map[string]int64{
		"gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens,
	} {
		value, found := s.derived.Attributes().Get(name)
		require.Equal(t, s.served.reportedUsage() && !slices.Contains(s.noUsage, s.call), found, name)
		if found {
			require.Equal(t, pcommon.ValueTypeInt, value.Type())
			require.Equal(t, want, value.Int(), name)
		}
	}
}

func (s seen) requireFirstToken(t *testing.T) {
	t.Helper()
	first, found := s.milliseconds("tokenpulse.time_to_first_token")
	best, visible := s.best()
	if !visible {
		require.False(t, found, "the library could not measure the first token")
		return
	}
	if !found {
		// The library leaves out a wait of 0 ms. It measures that if the headers arrive with
		// the first frame, or if it reads them late.
		require.True(t, s.sinceHeaders, "the library could measure the first token")
		return
	}
	require.LessOrEqual(t, first, s.duration()+clockStep)
	if !s.isWarmup() && !s.sinceHeaders { // those may be read late
		require.GreaterOrEqual(t, first, best-clockStep, "the library cannot see the frame before it is sent")
	}
	if s.firstFrame() == roleFrame {
		require.Contains(t, s.estimated(), "time_to_first_token", "the role frame holds no token")
	}
}

// requireFirstTokens checks that the time to first token on each API is that of the frame
// which the library takes for it: one call at least saw it before the server sent the next
// kind of frame. A busy machine delays some calls by more than that.
func (l library) requireFirstTokens(t *testing.T, calls map[string]seen) {
	t.Helper()
	for api, first := range l.first {
		next := map[frameKind]frameKind{roleFrame: contentFrame, contentFrame: finishFrame}[first]
		var late []float64 // milliseconds after the next kind of frame
		for _, s := range calls {
			after := s.served.times(next)
			if deviation, known := s.deviation(); known && s.served.streamed && s.served.api == api && !s.isWarmup() && len(after) > 0 {
				late = append(late, deviation-inMilliseconds(after[0].Sub(s.served.times(first)[0])))
			}
		}
		require.NotEmpty(t, late, api)
		require.Negative(t, slices.Min(late), "time to first token on %s", api)
	}
}

// requirePace checks the numbers that depend on the time of the first token. No library
// reports the last token, so decoding ends with the answer.
func (s seen) requirePace(t *testing.T) {
	t.Helper()
	first, foundFirst := s.milliseconds("tokenpulse.time_to_first_token")
	tokens, foundTokens := s.derived.Attributes().Get("gen_ai.usage.output_tokens")
	perToken, found := s.milliseconds("tokenpulse.time_per_output_token")
	require.Equal(t, foundFirst && foundTokens, found, "time per output token")
	decode, foundDecode := s.milliseconds("tokenpulse.decode.duration")
	require.Equal(t, foundFirst, foundDecode, "decode duration")
	if foundDecode {
		require.InDelta(t, s.duration()-first, decode, 1e-3)
		require.Contains(t, s.estimated(), "decode.duration")
	}
	if found {
		require.InDelta(t, (s.duration()-first)/float64(tokens.Int()-1), perToken, 1e-3)
		require.Contains(t, s.estimated(), "time_per_output_token")
		if truth, streamed := s.served.perTokenTruth(); streamed {
			best, _ := s.best()
			lateness := max(first-best, 0) / float64(tokens.Int()-1)
			require.GreaterOrEqual(t, perToken+lateness, truth, "the time per output token is an upper bound")
		}
	}
}

// requireGaps checks that a span has no inter-token latencies, because no library reports
// each token. At best, a library reports the mean gap of all frames.
func (s seen) requireGaps(t *testing.T) {
	t.Helper()
	var gaps []string
	for name := range s.derived.Attributes().All() {
		if strings.HasPrefix(name, "tokenpulse.inter_") {
			gaps = append(gaps, name)
		}
	}
	if s.reportsMeanGap && s.served.streamed {
		require.Equal(t, []string{"tokenpulse.inter_chunk_latency.mean"}, gaps)
		require.Contains(t, s.estimated(), "inter_chunk_latency")
		return
	}
	require.Empty(t, gaps)
}

// isWarmup reports whether the call warmed the library up.
func (s seen) isWarmup() bool { return strings.HasPrefix(s.call, "warmup") }

// firstFrame returns the kind of frame that the library takes for the first token, or
// an empty kind.
func (s seen) firstFrame() frameKind {
	switch {
	case !s.served.streamed && s.timesWhole:
		return wholeFrame
	case !s.served.streamed || slices.Contains(s.noFirst, s.call):
		return ""
	default:
		return s.first[s.served.api]
	}
}

// best returns the most accurate time to first token, in milliseconds, that the library
// could measure: from the start of its clock until the server sent the frame that it
// takes for the first token. Library and server share this machine's clock.
func (s seen) best() (milliseconds float64, visible bool) {
	frames := s.served.times(s.firstFrame())
	if len(frames) == 0 {
		return 0, false
	}
	start := s.derived.StartTimestamp().AsTime()
	if s.sinceHeaders {
		start = s.served.headers
	}
	return inMilliseconds(frames[0].Sub(start)), true
}

// deviation returns the difference between the derived time to first token and best.
func (s seen) deviation() (milliseconds float64, known bool) {
	derived, found := s.milliseconds("tokenpulse.time_to_first_token")
	best, visible := s.best()
	return math.Abs(derived - best), found && visible
}

// perTokenTruth returns the time per output token, at the server.
func (s served) perTokenTruth() (milliseconds float64, streamed bool) {
	tokens := s.times(contentFrame)
	if len(tokens) < 2 {
		return 0, false
	}
	return inMilliseconds(tokens[len(tokens)-1].Sub(tokens[0])) / float64(len(tokens)-1), true
}

func (s seen) duration() (milliseconds float64) {
	return inMilliseconds(s.derived.EndTimestamp().AsTime().Sub(s.derived.StartTimestamp().AsTime()))
}

func (s seen) milliseconds(name string) (value float64, found bool) {
	attribute, found := s.derived.Attributes().Get(name)
	if !found {
		return 0, false
	}
	return attribute.Double() * 1e3, true
}

func (s seen) estimated() []string {
	listed, found := s.derived.Attributes().Get("tokenpulse.estimated")
	if !found {
		return nil
	}
	var all []string
	for _, name := range listed.Slice().All() {
		all = append(all, name.Str())
	}
	return all
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
