package tokenlatencyprocessor

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// rollUp sums up the model calls of each trace on its root span.
func (t *tree) rollUp(counts *tally) {
	byTrace := map[pcommon.TraceID][]ptrace.Span{}
	for _, i := range t.requests() {
		span := t.nodes[i].span
		byTrace[span.TraceID()] = append(byTrace[span.TraceID()], span)
	}
	for trace, calls := range byTrace {
		root, ok := t.roots[trace]
		if !ok {
			counts.rollUps[rootMissing]++
			continue
		}
		counts.rollUps[rolledUp]++
		sumUp(t.nodes[root].span, calls, counts)
	}
}

// requests returns one node for each request to a model, however many vantage
// points saw it. A call belongs to the request of one above it that is as close
// to the user or closer. One above it that is further away is a service which
// makes calls itself: those count, and it does not.
func (t *tree) requests() []int {
	var leading []int
	makesCalls := map[int]bool{}
	for _, i := range t.calls {
		leads := true
		t.above(i, func(above int) bool {
			leads = t.nodes[above].vantage > t.nodes[i].vantage
			return leads
		})
		if !leads {
			continue
		}
		leading = append(leading, i)
		t.above(i, func(above int) bool {
			makesCalls[above] = true
			return true
		})
	}
	return slices.DeleteFunc(leading, func(i int) bool { return makesCalls[i] })
}

// sumUp writes the sums of a trace's model calls on its root.
func sumUp(root ptrace.Span, calls []ptrace.Span, counts *tally) {
	attributes := root.Attributes()
	attributes.PutInt(names.TraceCalls, int64(len(calls)))
	for _, tokens := range [...]struct{ sum, of, counted string }{
		{names.TraceInputTokens, names.GenAIInputTokens, ""},
		{names.TraceOutputTokens, names.GenAIOutputTokens, names.TokenCount},
	} {
		if n, known := sumOf(calls, tokens.of, tokens.counted); known {
			attributes.PutInt(tokens.sum, n)
		}
	}
	inCalls := union(calls)
	putMeasure(attributes, names.TraceCallDuration, latency.Measure{Value: seconds(inCalls), Known: true})
	whole := root.EndTimestamp() - root.StartTimestamp()
	switch {
	case root.EndTimestamp() <= root.StartTimestamp():
	case inCalls > whole:
		counts.rejected[latency.LongerThanRequest]++
	default:
		putMeasure(attributes, names.TraceCallShare, latency.Measure{Value: float64(inCalls) / float64(whole), Known: true})
	}
	putTimeToAnswer(root, calls, counts)
}

// sumOf adds up what the calls carry under a name, or under another where they
// lack it. It is unknown when none of them does.
func sumOf(calls []ptrace.Span, name, otherwise string) (sum int64, known bool) {
	for _, call := range calls {
		m := measured(call.Attributes(), name)
		if !m.Known && otherwise != "" {
			m = measured(call.Attributes(), otherwise)
		}
		sum += int64(m.Value)
		known = known || m.Known
	}
	return sum, known
}

// union returns the time that at least one of the calls was under way.
func union(calls []ptrace.Span) (sum pcommon.Timestamp) {
	byStart := slices.SortedFunc(slices.Values(calls), func(a, b ptrace.Span) int {
		return cmp.Compare(a.StartTimestamp(), b.StartTimestamp())
	})
	var covered pcommon.Timestamp // up to here
	for _, call := range byStart {
		if from := max(covered, call.StartTimestamp()); call.EndTimestamp() > from {
			sum += call.EndTimestamp() - from
			covered = call.EndTimestamp()
		}
	}
	return sum
}

// putTimeToAnswer writes how long the user waited for the first output token of
// the call that began last. Where it is not known what a call's tokens are for,
// its first token stands for it.
func putTimeToAnswer(root ptrace.Span, calls []ptrace.Span, counts *tally) {
	last := slices.MaxFunc(calls, func(a, b ptrace.Span) int { return cmp.Compare(a.StartTimestamp(), b.StartTimestamp()) })
	first := measured(last.Attributes(), names.TimeToFirstOutputToken)
	if !first.Known {
		first = measured(last.Attributes(), names.TimeToFirstToken)
		first.Estimated = true
	}
	switch {
	case !first.Known:
	case last.StartTimestamp() < root.StartTimestamp():
		counts.rejected[latency.Negative]++
	default:
		first.Value += seconds(last.StartTimestamp() - root.StartTimestamp())
		putMeasure(root.Attributes(), names.TraceTimeToAnswer, first)
	}
}

func seconds(t pcommon.Timestamp) float64 { return float64(t) / 1e9 }
