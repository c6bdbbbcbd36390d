// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// BenchmarkObserve_128Frames reads an OpenLLMetry span with as many frame events as the SDKs keep.
func BenchmarkObserve_128Frames(b *testing.B) {
	c := call{name: "openai.chat", duration: 5 * time.Second, attributes: map[string]any{names.GenAIOperationName: "chat", openLLMetryStream: true}}
	for i := range 128 {
		c.events = append(c.events, event{name: openLLMetryFrames[0], after: 200*ms + time.Duration(i)*20*ms})
	}
	span := c.span(b)
	var observer Observer
	b.ReportAllocs()
	for b.Loop() {
		o, err := observer.Observe("", span)
		if err != nil || o.Timeline.Left() != 128 {
			b.Fatal("a frame is missing", err)
		}
	}
	require.Equal(b, names.SourceOpenLLMetry, Names()[observer.observation.Reader])
}
