// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Whatever the spans are, each has a line or two, and a terminal shows them as text.
func FuzzDraw(f *testing.F) {
	text, err := os.ReadFile("../../../../testdata/spans/agent.jsonl")
	require.NoError(f, err)
	for line := range strings.Lines(string(text)) {
		f.Add(line, 80)
	}
	f.Fuzz(func(t *testing.T, text string, columns int) {
		batch, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(text))
		if err != nil || batch.SpanCount() == 0 || columns > 500 {
			t.Skip()
		}
		spans := batch.SpanCount()
		picture := drawn(t, columns, batch, nil)
		found := rows(picture)
		require.GreaterOrEqual(t, len(found), 1+spans)
		require.LessOrEqual(t, len(found), 1+2*spans)
		require.Negative(t, strings.IndexFunc(picture, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), "%q", picture)
	})
}
