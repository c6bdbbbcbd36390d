package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const capturesFolder = "captures"

// posted is one request that a library made to send its spans.
type posted struct {
	Path        string
	ContentType string `json:"content_type"`
	Body        json.RawMessage
}

// answered is what the server did with a request that the library made of it, by
// its own clock, which is also the library's: nanoseconds since 1970.
type answered struct {
	HeadersSent int64 `json:"headers_sent_unix_nano,string"`
	Chunks      []struct {
		Kind string
		Sent int64 `json:"sent_unix_nano,string"`
	}
}

// sent returns when the server sent the first frame of a kind.
func (a answered) sent(t *testing.T, kind string) int64 {
	t.Helper()
	for _, frame := range a.Chunks {
		if frame.Kind == kind {
			return frame.Sent
		}
	}
	require.Fail(t, "the server sent no such frame", kind)
	return 0
}

// readCapture returns the spans that a library posted, and what the server did
// meanwhile.
func readCapture(t *testing.T, name string) ([]posted, []answered) {
	t.Helper()
	var library struct{ Requests []posted }
	var server struct {
		Requests []answered `json:"server_requests"`
	}
	for suffix, into := range map[string]any{".json": &library, ".truth.json": &server} {
		content, err := os.ReadFile(filepath.Join(testenv.Shared(t, capturesFolder), name+suffix))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(content, into))
	}
	var traces []posted
	for _, request := range library.Requests {
		if filepath.Base(request.Path) == "traces" {
			traces = append(traces, request)
		}
	}
	require.NotEmpty(t, traces)
	return traces, server.Requests
}

// sentSpan is a span in the words of OTLP's JSON.
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

// spansOf returns all spans of some requests, in their order.
func spansOf(t *testing.T, requests []posted) []sentSpan {
	t.Helper()
	var spans []sentSpan
	for _, request := range requests {
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal(request.Body, &body))
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

// after returns how long after the span's start a moment was.
func (s sentSpan) after(unixNano int64) time.Duration { return time.Duration(unixNano - s.Start) }

// text and double return an attribute of the span.
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
