//go:build !race

package spanreader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A batch costs one list of its dimensions' values, however many spans it has. One
// with verdicts costs the memory of these, once: here a list that grows from one
// to two.
func TestSpansCostNoAllocation(t *testing.T) {
	plain := map[string]any{"tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.1, "gen_ai.usage.output_tokens": 7}
	judged := map[string]any{"tokenpulse.outcome": "success", "tokenpulse.slo.met": []any{"a"}, "tokenpulse.slo.breached": []any{"b"}}
	for _, test := range []struct {
		span map[string]any
		want float64
	}{{plain, 1}, {judged, 3}} {
		e, now := newEngine(), time.Now()
		dimensions := []string{"gen_ai.request.model"}
		traces := spans(t, test.span, test.span, test.span)
		Record(traces, e, dimensions, now)
		require.InDelta(t, test.want, testing.AllocsPerRun(100, func() { Record(traces, e, dimensions, now) }), 0)
	}
}
