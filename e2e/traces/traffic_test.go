// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build jaeger

package traces

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// exchange is a request through the tap. Its answer has 20 tokens.
type exchange struct {
	tenant, conversation, model string
	first, gap, stall           time.Duration // the stall comes after the 12th token
}

var exchanges = [...]exchange{
	{tenant: "acme", conversation: "conv-7", model: "llama-3-70b", first: 50 * time.Millisecond, gap: 5 * time.Millisecond},
	{tenant: "acme", conversation: "conv-7", model: "llama-3-70b", first: 1100 * time.Millisecond, gap: 5 * time.Millisecond},
	{tenant: "acme", conversation: "conv-9", model: "llama-3-70b", first: 1150 * time.Millisecond, gap: 70 * time.Millisecond}, // two breaches
	{tenant: "acme", conversation: "conv-9", model: "llama-3-8b", first: 60 * time.Millisecond, gap: 70 * time.Millisecond},
	{tenant: "globex", conversation: "conv-8", model: "llama-3-8b", first: 1200 * time.Millisecond, gap: 5 * time.Millisecond},
	{tenant: "globex", conversation: "conv-8", model: "llama-3-8b", first: 40 * time.Millisecond, gap: 5 * time.Millisecond, stall: 650 * time.Millisecond},
}

const (
	twoBreaches = 2 // index of the slowest of exchanges
	clientSpan  = "c1c1c1c1c1c1c1c1"
)

// exchangeUpstream is an LLM service that answers each exchange, and the recorded answers of vLLM, by the number in
// the header X-Exchange or X-Recorded.
type exchangeUpstream struct {
	url     string
	answers []recorded.Answer
	parents [len(exchanges)]string // IDs of the spans that called it, by exchange
}

func startExchangeUpstream(t *testing.T, answers []recorded.Answer) *exchangeUpstream {
	t.Helper()
	u := &exchangeUpstream{answers: answers}
	u.url = llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		if number, err := strconv.Atoi(r.Header.Get("X-Recorded")); err == nil {
			w.Header().Set("Content-Type", answers[number].ContentType)
			_, _ = w.Write(answers[number].Raw)
			return
		}
		number, err := strconv.Atoi(r.Header.Get("X-Exchange"))
		assert.NoError(t, err)
		u.parents[number] = strings.Split(r.Header.Get("Traceparent"), "-")[2]
		e := exchanges[number]
		time.Sleep(e.first)
		for i := range 20 {
			llmservice.WriteChunks(w, 1)
			time.Sleep(e.gap)
			if i == 11 {
				time.Sleep(e.stall)
			}
		}
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	}).URL
	return u
}

// sendExchanges sends all exchanges and recorded answers of vLLM through the tap, and returns the traces of the
// exchanges. The slowest one has spans of its client and of its engine, too, whose clock is ten minutes behind.
func sendExchanges(t *testing.T, tap string, u *exchangeUpstream) (traces []string) {
	t.Helper()
	var sending sync.WaitGroup
	send := func(path, body string, header map[string]string) {
		sending.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+tap+path, strings.NewReader(body))
			if !assert.NoError(t, err) {
				return
			}
			request.Header.Set("Content-Type", "application/json")
			for name, value := range header {
				request.Header.Set(name, value)
			}
			answer, err := http.DefaultClient.Do(request)
			if assert.NoError(t, err) {
				_, err = io.Copy(io.Discard, answer.Body)
				assert.NoError(t, err)
				assert.NoError(t, answer.Body.Close())
			}
		})
	}
	begin := int((time.Now().UnixNano() - agentTraceStart) / 1e6)
	for i, e := range exchanges {
		trace := fmt.Sprintf("ace%029x", i+1)
		traces = append(traces, trace)
		send(llmservice.ChatPath, fmt.Sprintf(`{"model":%q,"stream":true}`, e.model), map[string]string{
			"X-Exchange": strconv.Itoa(i), "X-Tenant-Id": e.tenant, "X-Conversation-Id": e.conversation,
			"Traceparent": "00-" + trace + "-" + clientSpan + "-01",
		})
	}
	for i, answer := range u.answers {
		send(answer.RequestPath, string(answer.Request), map[string]string{"X-Recorded": strconv.Itoa(i)})
	}
	sending.Wait()
	end, e := int((time.Now().UnixNano()-agentTraceStart)/1e6), exchanges[twoBreaches]
	const behind = 600_000
	postTrace(t, sent{service: "chat-app", id: clientSpan, name: "chat m", start: begin - 40, end: end + 20, operation: "chat", model: e.model, trace: traces[twoBreaches], attributes: map[string]float64{
		"gen_ai.response.time_to_first_chunk": e.first.Seconds() + 0.2,
	}})
	postTrace(t, sent{service: "engine", id: "f000000000000001", parent: u.parents[twoBreaches], name: "llm_request", start: begin + 20 - behind, end: end - 50 - behind, trace: traces[twoBreaches], attributes: map[string]float64{
		"gen_ai.latency.time_to_first_token": e.first.Seconds(), "gen_ai.latency.e2e": float64(end-begin-70) / 1000, "gen_ai.latency.time_in_queue": 0.9,
		"gen_ai.latency.time_in_model_prefill": 0.2, "gen_ai.latency.time_in_model_decode": 1.3,
	}})
	return traces
}

// plannerTrace is an agent's answer, most of whose time a tool took.
const plannerTrace = "9e8efff798038103d269b633813fc60d"

var planner = []sent{
	{service: "planner", id: "d000000000000001", name: "invoke_agent planner", start: 0, end: 4000, operation: "invoke_agent", trace: plannerTrace},
	{service: "planner", id: "d000000000000002", parent: "d000000000000001", name: "chat m", start: 100, end: 900, operation: "chat", model: "large", trace: plannerTrace},
	{service: "planner", id: "d000000000000003", parent: "d000000000000001", name: "execute_tool search", start: 950, end: 3100, operation: "execute_tool", trace: plannerTrace},
	{service: "planner", id: "d000000000000004", parent: "d000000000000001", name: "chat m", start: 3200, end: 3950, operation: "chat", model: "large", trace: plannerTrace},
}

// drawnTrace is one request seen by a client, by a gateway whose clock is 250 ms ahead, and by an engine
// whose clock is ten minutes behind.
const drawnTrace = "7a8efff798038103d269b633813fc60e"

func sendDrawn(t *testing.T, c *collector.Collector) {
	t.Helper()
	var lines strings.Builder
	observe := func(vantage, span, parent string, clock time.Duration, first, end time.Duration) {
		event := tokenevents.EventsOf(&lines, vantage, time.Unix(0, agentTraceStart).Add(clock))
		event("start", 0, fmt.Sprintf(`,"trace_id":%q,"span_id":%q,"vantage":%q,"resource":{"service.name":%q},"attributes":{"gen_ai.operation.name":"chat","gen_ai.request.model":"m"}%s`,
			drawnTrace, span, vantage, vantage, parent))
		for i := range 20 {
			at := first + time.Duration(i)*30*time.Millisecond
			if i >= 12 {
				at += 620 * time.Millisecond
			}
			event("chunk", at, "")
		}
		event("end", end, "")
	}
	observe("client", "e000000000000001", "", 0, 400*time.Millisecond, 1650*time.Millisecond)
	observe("gateway", "e000000000000002", `,"parent_span_id":"e000000000000001"`, 280*time.Millisecond, 350*time.Millisecond, 1580*time.Millisecond)
	c.Post(t, "application/x-ndjson", strings.NewReader(lines.String()))
	const behind = -600_000
	postTrace(t, sent{service: "engine", id: "e000000000000003", parent: "e000000000000002", name: "llm_request", start: behind + 50, end: behind + 1560, trace: drawnTrace, attributes: map[string]float64{
		"gen_ai.latency.time_to_first_token": 0.3, "gen_ai.latency.e2e": 1.5, "gen_ai.latency.time_in_queue": 0.12,
		"gen_ai.latency.time_in_model_prefill": 0.17, "gen_ai.latency.time_in_model_decode": 1.19,
	}})
}
