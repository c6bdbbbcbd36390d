// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// sentAt returns when the server sent the first frame of a kind.
func sentAt(t *testing.T, answer testenv.CapturedAnswer, kind string) int64 {
	t.Helper()
	for _, frame := range answer.Frames {
		if frame.Kind == kind {
			return frame.Sent
		}
	}
	require.Fail(t, "the server sent no such frame", kind)
	return 0
}

// sentSpan is a span of a capture, in the fields of OTLP's JSON.
type sentSpan struct {
	SpanID     string
	Name       string
	Start      int64 `json:"startTimeUnixNano,string"`
	End        int64 `json:"endTimeUnixNano,string"`
	Attributes []struct {
		Key   string
		Value struct {
			StringValue string
			DoubleValue float64
		}
	}
	Events []struct {
		Name string
		Time int64 `json:"timeUnixNano,string"`
	}

	whole ptrace.Span
}

// spansOf returns the spans of a capture, in the order in which they were posted.
func spansOf(t *testing.T, capture testenv.Capture) []sentSpan {
	t.Helper()
	var spans []sentSpan
	for _, post := range capture.Posts {
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal(post.Body, &body))
		for _, resource := range body.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, written := range scope.Spans {
					spans = append(spans, readSentSpan(t, written))
				}
			}
		}
	}
	return spans
}

func readSentSpan(t *testing.T, written json.RawMessage) sentSpan {
	t.Helper()
	var span sentSpan
	require.NoError(t, json.Unmarshal(written, &span))
	alone, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(
		fmt.Appendf(nil, `{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}`, written))
	require.NoError(t, err)
	span.whole = alone.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	return span
}

// after returns the time from the span's start to a Unix time in nanoseconds.
func (s sentSpan) after(unixNano int64) time.Duration { return time.Duration(unixNano - s.Start) }

// text returns a string attribute of the span.
func (s sentSpan) text(t *testing.T, name string) string {
	t.Helper()
	for _, attribute := range s.Attributes {
		if attribute.Key == name {
			return attribute.Value.StringValue
		}
	}
	require.Fail(t, "the library sent no such attribute", name)
	return ""
}

// double returns a number attribute of the span.
func (s sentSpan) double(t *testing.T, name string) float64 {
	t.Helper()
	for _, attribute := range s.Attributes {
		if attribute.Key == name {
			return attribute.Value.DoubleValue
		}
	}
	require.Fail(t, "the library sent no such attribute", name)
	return 0
}
