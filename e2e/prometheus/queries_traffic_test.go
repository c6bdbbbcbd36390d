// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

const (
	scrapeStep     = time.Minute
	incidentLength = 95 * time.Minute
	// More requests are in flight for a while.
	busyFrom, busyUntil = 8 * time.Minute, 22 * time.Minute
	// deployAt is when engine-2 gets version 1.5, which decodes at a fifth of the speed.
	deployAt = 80 * time.Minute
	// triedFrom is when it got that version before. It was rolled back.
	triedFrom, triedUntil = 46 * time.Minute, 52 * time.Minute

	// coldUntil is how long engines are cold at first, coldIdle how long a Collector has to run to say so: by default.
	coldUntil, coldIdle = 2 * time.Minute, 15 * time.Minute

	queued = 500 * time.Millisecond
	// beforeToken is the time of queue, prefill and network.
	beforeToken = 2 * time.Second
	// spokenBefore is the time from speech to the first token, at the client. Speech between tokens would make a gap no stall.
	spokenBefore = 500 * time.Millisecond
	// loading is what a cold engine takes before its prefill.
	loading = 6 * time.Second
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
// toFirst, then 40 tokens after the first in four chunks. Answers of one token, and
// failures without a token, take as long. The network delays the request on its way to the
// engine.
type llmRequest struct {
	lane
	number                   int // within all requests
	service, version         string
	start, network, perToken time.Duration
	failure                  string // its error.type
	oneToken                 bool
}

func (r llmRequest) end() time.Duration { return r.start + r.toFirst() + 40*r.perToken }
func (r llmRequest) traceID() string    { return fmt.Sprintf("%032x", r.number+1) }
func (r llmRequest) slow() bool         { return r.perToken > 100*time.Millisecond }
func (r llmRequest) cold() bool         { return r.start < coldUntil }

func (r llmRequest) toFirst() time.Duration {
	if r.cold() {
		return beforeToken + loading
	}
	return beforeToken
}

// phases are those of the client, with those of the engine.
func (r llmRequest) phases() map[string]time.Duration {
	return map[string]time.Duration{
		"phase=queue": queued, "phase=network": r.network, "phase=prefill": r.toFirst() - queued - r.network, "phase=decode": 40 * r.perToken,
	}
}

// requestsOf returns the requests of lanes by their end. The last ones may end later
// than their lane.
func requestsOf(lanes []lane) []llmRequest {
	var all []llmRequest
	for _, l := range lanes {
		for at, i := l.from, 0; at < l.until; i++ {
			r := llmRequest{lane: l, number: len(all), service: "shop", version: "1.4", start: at, network: 100 * time.Millisecond, perToken: 50 * time.Millisecond}
			if l.engine == "engine-2" && (at >= deployAt || at >= triedFrom && at < triedUntil) {
				r.version, r.network, r.perToken = "1.5", 500*time.Millisecond, 250*time.Millisecond
			}
			if l.model == "llama-3-8b" {
				r.oneToken = i%5 == 0
				if i%5 == 1 {
					r.failure = "overloaded"
				}
			}
			all = append(all, r)
			at = r.end()
		}
	}
	slices.SortFunc(all, func(a, b llmRequest) int { return int(a.end() - b.end()) })
	return all
}

// write writes the events of a request as NDJSON: those of its client, and those of its
// engine, which alone knows when it scheduled the request.
func (r llmRequest) write(to io.Writer, begin time.Time) {
	id := fmt.Sprintf("%016x", r.number+1)
	client := tokenevents.EventsOf(to, "client-"+id, begin)
	client("start", r.start, fmt.Sprintf(`,"trace_id":%q,"span_id":%q,"vantage":"client","resource":{"service.name":%q,"service.version":%q},"attributes":{`+
		`"gen_ai.request.model":%q,"gen_ai.provider.name":"vllm","gen_ai.operation.name":"chat","tenant.id":%q,"server.address":%q}`,
		r.traceID(), id, r.service, r.version, r.model, r.tenant, r.engine))
	engine, arrived := tokenevents.EventsOf(to, "engine-"+id, begin), r.start+r.network
	engine("start", arrived, fmt.Sprintf(`,"trace_id":%q,"parent_span_id":%q,"vantage":"engine","resource":{"service.name":%q}`, r.traceID(), id, r.engine))
	engine("scheduled", arrived+queued, "")
	for _, observer := range []struct {
		write tokenevents.Writer
		usage string
	}{{client, r.usage()}, {engine, ""}} {
		if r.failure != "" {
			observer.write("end", r.end(), fmt.Sprintf(`,"error":"failed","attributes":{"error.type":%q}`, r.failure))
			continue
		}
		first := r.start + r.toFirst()
		if observer.usage != "" { // the client plays the answer, which changes no other number
			observer.write("chunk", first-spokenBefore, `,"channel":"audio"`)
		}
		observer.write("chunk", first, "")
		for i := 1; i <= 4 && !r.oneToken; i++ {
			observer.write("chunk", first+time.Duration(10*i)*r.perToken, `,"tokens":10`)
		}
		observer.write("end", r.end(), observer.usage)
	}
}

// usage is what the client reports at the end of a request that succeeded.
func (r llmRequest) usage() string {
	output := 41
	if r.oneToken {
		output = 1
	}
	return fmt.Sprintf(`,"usage":{"input_tokens":1000,"cached_input_tokens":250,"output_tokens":%d}`, output)
}
