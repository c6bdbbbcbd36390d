// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	scrapeStep     = 30 * time.Second
	incidentLength = 95 * time.Minute
	// More requests are in flight for a while.
	busyFrom, busyUntil = 8 * time.Minute, 22 * time.Minute
	// deployAt is when engine-2 gets version 1.5, which decodes at a fifth of the speed.
	deployAt = 80 * time.Minute

	queued    = 500 * time.Millisecond
	prefilled = 1500 * time.Millisecond
)

// lane sends requests one after the other: one is in flight at any time.
type lane struct {
	model, tenant, engine string
	from, until           time.Duration
}

// incidentLanes is the traffic of an incident: a bad deploy on one of two engines.
var incidentLanes = []lane{
	{"llama-3-70b", "acme", "engine-2", 0, incidentLength},
	{"llama-3-70b", "acme", "engine-2", 0, incidentLength},
	{"llama-3-70b", "globex", "engine-1", 0, incidentLength},
	{"llama-3-70b", "globex", "engine-2", 0, incidentLength},
	{"llama-3-70b", "globex", "engine-1", busyFrom, busyUntil},
	{"llama-3-70b", "globex", "engine-1", busyFrom, busyUntil},
	{"llama-3-70b", "globex", "engine-1", busyFrom, busyUntil},
	{"llama-3-8b", "initech", "engine-3", 0, incidentLength},
	{"llama-3-8b", "initech", "engine-3", 0, incidentLength},
}

// inFlight returns how many requests to a model are in flight at a time.
func inFlight(model string, at time.Duration) float64 {
	n := 0.
	for _, l := range incidentLanes {
		if l.model == model && l.from < at && at <= l.until {
			n++
		}
	}
	return n
}

// llmRequest is a request of a lane, at a time since the beginning of the traffic. All take
// queued and prefilled, then 40 tokens after the first in four chunks. Answers of one
// token, and failures without a token, take as long.
type llmRequest struct {
	lane
	number           int // within all requests
	version          string
	start, perToken  time.Duration
	failed, oneToken bool
}

func (r llmRequest) end() time.Duration { return r.start + queued + prefilled + 40*r.perToken }
func (r llmRequest) traceID() string    { return fmt.Sprintf("%032x", r.number+1) }

// requestsOf returns the requests of lanes by their end. The last ones may end later
// than their lane.
func requestsOf(lanes []lane) []llmRequest {
	var all []llmRequest
	for _, l := range lanes {
		for at, i := l.from, 0; at < l.until; i++ {
			r := llmRequest{lane: l, number: len(all), version: "1.4", start: at, perToken: 50 * time.Millisecond}
			if l.engine == "engine-2" && at >= deployAt {
				r.version, r.perToken = "1.5", 250*time.Millisecond
			}
			if l.model == "llama-3-8b" {
				r.oneToken, r.failed = i%5 == 0, i%5 == 1
			}
			all = append(all, r)
			at = r.end()
		}
	}
	slices.SortFunc(all, func(a, b llmRequest) int { return int(a.end() - b.end()) })
	return all
}

// write writes the events of a request as NDJSON.
func (r llmRequest) write(to io.Writer, begin time.Time) {
	event := func(kind string, at time.Duration, more string) {
		fmt.Fprintf(to, `{"event":%q,"stream_id":"r%d","time_unix_nano":%d%s}`+"\n", kind, r.number, begin.Add(at).UnixNano(), more)
	}
	event("start", r.start, fmt.Sprintf(`,"trace_id":%q,"vantage":"client","resource":{"service.name":"shop","service.version":%q},"attributes":{`+
		`"gen_ai.request.model":%q,"gen_ai.provider.name":"vllm","gen_ai.operation.name":"chat","tenant.id":%q,"server.address":%q}`,
		r.traceID(), r.version, r.model, r.tenant, r.engine))
	event("scheduled", r.start+queued, "")
	first := r.start + queued + prefilled
	if r.failed {
		event("end", r.end(), `,"error":"overloaded"`)
		return
	}
	event("chunk", first, "")
	for i := 1; i <= 4 && !r.oneToken; i++ {
		event("chunk", first+time.Duration(10*i)*r.perToken, `,"tokens":10`)
	}
	output := 41
	if r.oneToken {
		output = 1
	}
	event("end", r.end(), fmt.Sprintf(`,"usage":{"input_tokens":1000,"cached_input_tokens":250,"output_tokens":%d}`, output))
}
