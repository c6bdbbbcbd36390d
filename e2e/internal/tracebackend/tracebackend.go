// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tracebackend stands in for a trace backend that fails.
package tracebackend

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
)

// Backend takes spans over OTLP/HTTP, beside token_sli. It answers with the status
// that a test sets.
type Backend struct {
	Server *httptest.Server

	Mu sync.Mutex
	// mu guards everything declared below.
	status    int
	presented int                // spans
	distinct  map[[24]byte]int   // presented spans by trace and span ID
	Taken     []ptrace.SpanSlice // answered with 200
}

func (b *Backend) serve(w http.ResponseWriter, request *http.Request) {
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
	b.Mu.Lock()
	defer b.Mu.Unlock()
	for _, resource := range export.Traces().ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				trace, id := span.TraceID(), span.SpanID()
				b.distinct[[24]byte(append(trace[:], id[:]...))]++
				b.presented++
			}
			if b.status == http.StatusOK {
				b.Taken = append(b.Taken, scope.Spans())
			}
		}
	}
	w.WriteHeader(b.status)
}

// Answer sets the status of the next answers.
func (b *Backend) Answer(status int) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.status = status
}

// Received counts the spans. tokenevents.EventsOf returns the accepted events of a taken span.
func (b *Backend) Received(eventsOf func(ptrace.Span) int64) Received {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	r := Received{Presented: int64(b.presented), Distinct: int64(len(b.distinct))}
	distinct := map[pcommon.SpanID]bool{}
	for _, spans := range b.Taken {
		for _, span := range spans.All() {
			r.Taken++
			distinct[span.SpanID()] = true
			r.Events += eventsOf(span)
		}
	}
	r.DistinctTaken = int64(len(distinct))
	return r
}

// Start starts a backend that answers with 200.
func Start(t *testing.T) *Backend {
	t.Helper()
	b := &Backend{status: http.StatusOK, distinct: map[[24]byte]int{}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Server.Close)
	return b
}

// Received is what the backend knows about the pipeline.
type Received struct{ Presented, Distinct, Taken, DistinctTaken, Events int64 }
