//go:build clients

package e2e

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// How far, in milliseconds, a time to the first token may be from what the library
// could see at best: the best of several like calls, and any one of them, which a
// busy machine may delay, but not by as much as lies between the role frame and the
// first token.
const (
	tolerance    = 5
	toleranceOne = 100
)

// seen is one model call: what the server did, and what came of the client's span.
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
	require.Equal(t, s.source, text(t, attributes, "tokenpulse.source"))
	require.Equal(t, "client", text(t, attributes, "tokenpulse.vantage"))
	require.InDelta(t, s.duration(), milliseconds(t, attributes, "tokenpulse.request.duration"), 1e-6)
	if s.call != "aborted" { // which no library says
		require.Equal(t, "success", text(t, attributes, "tokenpulse.outcome"))
	}
	s.requireUsage(t)
	s.requireFirstToken(t)
	s.requirePace(t)
	s.requireGaps(t)
}

// requireUntouched checks that what the library said stands.
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
	_, found := s.milliseconds("tokenpulse.time_to_first_token")
	if _, visible := s.best(); !visible {
		require.False(t, found, "the library could not see when the first token came")
		return
	}
	if !found {
		// It leaves out a wait of 0 ms, which is what it sees where the headers come
		// with the first frame, or when it is late to read them.
		require.True(t, s.sinceHeaders, "the library saw when the first token came")
		return
	}
	if deviation, _ := s.deviation(); !s.isWarmup() {
		require.LessOrEqual(t, deviation, float64(toleranceOne))
	}
	if s.firstFrame() == roleFrame {
		require.Contains(t, s.estimated(), "time_to_first_token", "the role frame holds no token")
	}
}

// requireFirstTokens checks that the time to the first token is what the library
// could see on each API. The best of its calls tells: a delay that is not of the
// measurement's making is in some of them only.
func (l library) requireFirstTokens(t *testing.T, calls map[string]seen) {
	t.Helper()
	for api := range l.first {
		best := math.Inf(1)
		for _, s := range calls {
			if deviation, known := s.deviation(); known && s.served.streamed && s.served.api == api && !s.isWarmup() {
				best = min(best, deviation)
			}
		}
		require.LessOrEqual(t, best, float64(tolerance), "time to first token on %s", api)
	}
}

// requirePace checks what rests on the time of the first token. As no library says
// when the last one came, the answer's end stands in for it.
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
			seenLate := max(first-best, 0) / float64(tokens.Int()-1)
			require.GreaterOrEqual(t, perToken+seenLate, truth, "an upper bound")
		}
	}
}

// requireGaps checks that no gaps between tokens are made up: no library says when
// each token came, and the best of them a mean over all frames.
func (s seen) requireGaps(t *testing.T) {
	t.Helper()
	var gaps []string
	for name := range s.derived.Attributes().All() {
		if strings.HasPrefix(name, "tokenpulse.inter_") {
			gaps = append(gaps, name)
		}
	}
	if s.saysMeanGap && s.served.streamed {
		require.Equal(t, []string{"tokenpulse.inter_chunk_latency.mean"}, gaps)
		require.Contains(t, s.estimated(), "inter_chunk_latency")
		return
	}
	require.Empty(t, gaps)
}

// isWarmup tells a call that made the library load what it needs.
func (s seen) isWarmup() bool { return strings.HasPrefix(s.call, "warmup") }

// firstFrame returns which frame the library takes for the first token, if any.
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

// best returns how long, in milliseconds, the wait for the first token was at best
// that the library could see: from where its clock starts until the server sent the
// frame that it takes for the first token. Both ends are of this machine's clock.
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

// deviation returns how far the derived time to the first token is from that.
func (s seen) deviation() (milliseconds float64, known bool) {
	derived, found := s.milliseconds("tokenpulse.time_to_first_token")
	best, visible := s.best()
	return math.Abs(derived - best), found && visible
}

// firstTokenTruth returns the time from the request to the first token, as the
// server saw them.
func (s served) firstTokenTruth() (milliseconds float64, streamed bool) {
	tokens := s.times(contentFrame)
	if len(tokens) == 0 {
		return 0, false
	}
	return inMilliseconds(tokens[0].Sub(s.received)), true
}

// perTokenTruth returns the time per output token, as the server saw it.
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
