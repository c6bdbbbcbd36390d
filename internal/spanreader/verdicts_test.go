package spanreader

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

func newEngine() *series.Engine {
	return series.NewEngine(series.Options{Series: series.SeriesConfig{MaxSeries: 10}})
}

func spans(t testing.TB, all ...map[string]any) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	scope := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for _, attributes := range all {
		require.NoError(t, scope.Spans().AppendEmpty().Attributes().FromRaw(attributes))
	}
	return traces
}

// verdicts returns the requests of each objective that are not eligible, good and
// bad.
func verdicts(e *series.Engine) map[string][3]uint64 {
	all := map[string][3]uint64{}
	e.Collect(time.Now(), func(s *series.Snapshot) {
		for _, slo := range s.SLOs {
			all[slo.Name] = slo.Requests
		}
	})
	return all
}

func manyNames(n int) (all []any) {
	for i := range n {
		all = append(all, fmt.Sprint("slo-", i))
	}
	return all
}

func TestVerdictsAreRead(t *testing.T) {
	tests := map[string]struct {
		span  map[string]any
		want  map[string][3]uint64
		wrong int64
	}{
		"one list of each": {
			span: map[string]any{"tokenpulse.slo.met": []any{"a", "b"}, "tokenpulse.slo.breached": []any{"c"}, "tokenpulse.slo.not_eligible": []any{"d"}},
			want: map[string][3]uint64{"all": {0, 0, 1}, "a": {0, 1, 0}, "b": {0, 1, 0}, "c": {0, 0, 1}, "d": {1, 0, 0}},
		},
		"empty lists": {
			span: map[string]any{"tokenpulse.slo.met": []any{}, "tokenpulse.slo.breached": []any{}},
			want: map[string][3]uint64{},
		},
		"no lists": {
			span:  map[string]any{"tokenpulse.slo.met": "a", "tokenpulse.slo.breached": 1, "tokenpulse.slo.not_eligible": map[string]any{"a": "b"}},
			want:  map[string][3]uint64{},
			wrong: 3,
		},
		"lists of other things": {
			span:  map[string]any{"tokenpulse.slo.met": []any{1, "a", true, "", nil, []any{"b"}}, "tokenpulse.slo.breached": []any{2.5}},
			want:  map[string][3]uint64{"all": {0, 1, 0}, "a": {0, 1, 0}},
			wrong: 2,
		},
		"a name that is too long": {
			span: map[string]any{"tokenpulse.slo.met": []any{strings.Repeat("x", 100_000)}},
			want: map[string][3]uint64{"all": {0, 1, 0}, strings.Repeat("x", 256): {0, 1, 0}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			tally := Record(spans(t, test.span), e, nil, time.Now())
			require.EqualValues(t, 1, tally.Requests)
			require.Equal(t, test.wrong, tally.Rejected[WrongType])
			require.Zero(t, tally.DroppedVerdicts)
			require.Equal(t, test.want, verdicts(e))
		})
	}
}

func TestVerdictsOfOneSpanAreBounded(t *testing.T) {
	e := newEngine()
	tally := Record(spans(t, map[string]any{"tokenpulse.slo.breached": manyNames(1000), "tokenpulse.slo.met": []any{"one more"}}), e, nil, time.Now())
	require.EqualValues(t, 1000-64+1, tally.DroppedVerdicts)
	require.Len(t, verdicts(e), 65)
	require.Equal(t, [3]uint64{0, 0, 1}, verdicts(e)["all"])
}

// Spans share the memory of their verdicts.
func TestVerdictsDoNotLeakIntoTheNextSpan(t *testing.T) {
	e := newEngine()
	Record(spans(t,
		map[string]any{"tokenpulse.slo.breached": []any{"a", "b"}},
		map[string]any{"tokenpulse.outcome": "success"},
		map[string]any{"tokenpulse.slo.met": []any{"c"}},
	), e, nil, time.Now())
	require.Equal(t, map[string][3]uint64{"all": {0, 1, 1}, "a": {0, 0, 1}, "b": {0, 0, 1}, "c": {0, 1, 0}}, verdicts(e))
}

// An engine that is for objectives only holds verdicts, and nothing that takes
// memory.
func TestVerdictsOnly(t *testing.T) {
	e := newEngine()
	span := map[string]any{"tokenpulse.outcome": "cancelled", "tokenpulse.time_to_first_token": 1.0, "gen_ai.usage.output_tokens": 7, "tokenpulse.slo.met": []any{"a"}}
	tally := RecordVerdicts(spans(t, span, map[string]any{"http.route": "/"}), e, nil, time.Now())
	require.Equal(t, Tally{Requests: 1, Ignored: 1}, tally)
	require.Equal(t, map[string][3]uint64{"all": {0, 1, 0}, "a": {0, 1, 0}}, verdicts(e))
	e.Collect(time.Now(), func(s *series.Snapshot) {
		_, counted := s.Count(series.OutputTokens)
		require.False(t, counted)
		require.EqualValues(t, 1, s.Outcomes[series.Cancelled].Requests)
		require.Zero(t, s.Outcomes[series.Cancelled].Distributions[series.TimeToFirstToken].Sketch.Count())
	})
}
