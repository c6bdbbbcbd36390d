// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// exchanges are in testdata/exchanges.json: what services answer, and what follows for requests and outcomes from
// docs/definitions.md. Shapes are those of the services, texts are synthetic.
type exchanges struct {
	Name  string
	Steps []struct {
		Method, Path, Type, Body string
		Status                   int
		Request                  json.RawMessage
	}
	Spans []expectedSpan
}

type expectedSpan struct {
	Outcome, Error, Untimed, Provider, Operation string
	Finish                                       []string
	Chunks                                       int
	Output                                       *int64
}

func readExchanges(t *testing.T) (all []exchanges) {
	t.Helper()
	content, err := os.ReadFile("testdata/exchanges.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &all))
	require.Greater(t, len(all), 80)
	return all
}

// pass sends the exchanges through a tap one after the other. It returns their spans in order.
func (x *exchanges) pass(t *testing.T) (*tap, []ptrace.Span) {
	t.Helper()
	var step atomic.Int64
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		s := x.Steps[step.Load()]
		w.Header().Set("Content-Type", s.Type)
		w.WriteHeader(s.Status)
		_, _ = io.WriteString(w, s.Body)
	})
	for i, s := range x.Steps {
		step.Store(int64(i))
		request, err := http.NewRequestWithContext(t.Context(), s.Method, p.url+s.Path, strings.NewReader(string(s.Request)))
		require.NoError(t, err)
		response, err := client(t).Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, s.Body, string(body), "forwarded bytes stay equal")
		require.Eventually(t, func() bool { return p.receiver.open.Load() == 0 }, time.Minute, time.Millisecond)
	}
	require.NoError(t, p.receiver.Shutdown(t.Context())) // sends what is queued
	var spans []ptrace.Span
	for _, traces := range p.spans.AllTraces() {
		for _, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			spans = append(spans, span)
		}
	}
	return p, spans
}

func TestExchanges_CountOnceWithTheRightOutcome(t *testing.T) {
	for _, x := range readExchanges(t) {
		t.Run(x.Name, func(t *testing.T) {
			t.Parallel()
			_, spans := x.pass(t)
			require.Len(t, spans, len(x.Spans))
			for i, want := range x.Spans {
				got := attributesOf(spans[i])
				times, _ := arrivals(t, spans[i])
				text := func(name string) string { return str(got[name]) }
				require.Equal(t, want.Outcome, text("tokenpulse.outcome"))
				require.Equal(t, want.Error, text("error.type"))
				require.Equal(t, want.Untimed, text("tokenpulse.tap.untimed"))
				require.Len(t, times, want.Chunks)
				require.Equal(t, want.Outcome == "error" || want.Error != "", spans[i].Status().Code() == ptrace.StatusCodeError)
				if want.Provider != "" {
					require.Equal(t, want.Provider, text("gen_ai.provider.name"))
				}
				require.Equal(t, cmp.Or(want.Operation, text("gen_ai.operation.name")), text("gen_ai.operation.name"))
				var finish []string
				if list, ok := got["gen_ai.response.finish_reasons"].([]any); ok {
					for _, reason := range list {
						finish = append(finish, str(reason))
					}
				}
				if want.Finish != nil {
					require.Equal(t, want.Finish, finish)
				}
				if want.Output != nil {
					require.Equal(t, *want.Output, got["gen_ai.usage.output_tokens"])
				}
			}
		})
	}
}

func str(v any) string { s, _ := v.(string); return s }

// The receiver counts each exchange with the outcome that token_latency derives from its span, so that
// exchanges_finished and tokenpulse.requests add up to the same.
func TestExchanges_AgreeWithTheDerivedOutcome(t *testing.T) {
	for _, x := range readExchanges(t) {
		t.Run(x.Name, func(t *testing.T) {
			t.Parallel()
			p, spans := x.pass(t)
			derived := map[string]int64{}
			for _, span := range spans {
				o, err := new(source.Observer).Observe("", span)
				require.NoError(t, err)
				l, err := latency.NewAnalyzer(latency.Options{}).Analyze(o.Request, o.Timeline)
				require.NoError(t, err)
				derived[l.Outcome]++
				if untimed, _ := span.Attributes().Get("tokenpulse.tap.untimed"); untimed.Str() == "tokenless" {
					require.Equal(t, "no_token", l.Absences[0].String())
				}
			}
			require.Equal(t, derived, p.counterBy("outcome", "exchanges_finished"))
		})
	}
}
