// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The README shows a span as the processor writes it. This rewrites the example:
//
//	go test ./processor/tokenlatencyprocessor -run TestWorkedExample -update
func TestWorkedExample(t *testing.T) {
	traces, spans := newSpans()
	span := addStream(spans)
	span.SetEndTimestamp(epoch + pcommon.Timestamp(950*time.Millisecond))
	span.Attributes().PutStr(names.Timeline, "180r 200 290x3 900 920")
	packTimeline(t, span.Attributes())
	span.Attributes().PutDouble("tokenpulse.queue.duration", 0.030)

	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))

	var lines []string
	for name, v := range onlySpan(t, sink.AllTraces()[0]).Attributes().All() {
		value := v.AsString()
		switch v.Type() {
		case pcommon.ValueTypeDouble:
			value = fmt.Sprintf("%.6g", v.Double())
		case pcommon.ValueTypeBytes:
			value = fmt.Sprintf("(%d bytes)", v.Bytes().Len())
		}
		lines = append(lines, fmt.Sprintf("%-42s %s", name, value))
	}
	slices.Sort(lines)
	testenv.RequireTables(t, "processor/tokenlatencyprocessor/README.md",
		map[string]string{"example": "```\n" + strings.Join(lines, "\n") + "\n```\n"})
}
