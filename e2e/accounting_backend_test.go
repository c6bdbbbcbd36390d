// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// traceBackend takes spans over OTLP/HTTP, beside token_sli. It answers with the status
// that a test sets.
type traceBackend struct {
	server *httptest.Server

	mu sync.Mutex
	// mu guards everything declared below.
	status    int
	presented int                // spans
	distinct  map[[24]byte]int   // presented spans by trace and span ID
	taken     []ptrace.SpanSlice // answered with 200
}

func startTraceBackend(t *testing.T) *traceBackend {
	t.Helper()
	b := &traceBackend{status: http.StatusOK, distinct: map[[24]byte]int{}}
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.server.Close)
	return b
}

func (b *traceBackend) serve(w http.ResponseWriter, request *http.Request) {
	uncompressed, err := gzip.NewReader(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(uncompressed)
	export := ptraceotlp.NewExportRequest()
	if err != nil || export.UnmarshalProto(body) != nil {
		http.Error(w, "unreadable", http.StatusUnsupportedMediaType)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range export.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				trace, id := span.TraceID(), span.SpanID()
				b.distinct[[24]byte(append(trace[:], id[:]...))]++
				b.presented++
			}
			if b.status == http.StatusOK {
				b.taken = append(b.taken, scope.Spans())
			}
		}
	}
	w.WriteHeader(b.status)
}

func (b *traceBackend) answer(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// received is what the backend knows about the pipeline.
type received struct{ presented, distinct, taken, distinctTaken, events int64 }

// received counts the spans. eventsOf returns the accepted events of a taken span.
func (b *traceBackend) received(eventsOf func(ptrace.Span) int64) received {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := received{presented: int64(b.presented), distinct: int64(len(b.distinct))}
	distinct := map[pcommon.SpanID]bool{}
	for _, spans := range b.taken {
		for _, span := range spans.All() {
			r.taken++
			distinct[span.SpanID()] = true
			r.events += eventsOf(span)
		}
	}
	r.distinctTaken = int64(len(distinct))
	return r
}

// Attributes with which the senders of the accounting tests describe their streams.
const (
	// extraEvents is the number of events besides the start, the chunks and the end.
	extraEvents = "test.extra_events"
	// chunksOfMessage is set if an event is a message with that number of chunks.
	chunksOfMessage = "test.chunks_of_message"
)

// acceptedEvents returns the number of accepted events that a span is made of.
func acceptedEvents(span ptrace.Span) int64 {
	attributes := span.Attributes()
	chunks := numberOf(attributes, "tokenpulse.chunk.count") - numberOf(attributes, names.ChunksDropped)
	if each := numberOf(attributes, chunksOfMessage); each > 0 {
		return chunks / each
	}
	events := 1 + chunks + numberOf(attributes, extraEvents)
	if outcome, _ := attributes.Get(names.Outcome); outcome.Str() != names.OutcomeIncomplete {
		events++
	}
	return events
}

func numberOf(attributes pcommon.Map, name string) int64 {
	v, ok := attributes.Get(name)
	if !ok {
		return 0
	}
	return v.Int()
}
