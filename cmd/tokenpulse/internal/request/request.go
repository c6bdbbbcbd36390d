// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package request has what a command shows of one request: its numbers, and what its span says besides.
package request

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Request is a request of a file. Numbers that are missing are NaN.
type Request struct {
	Start time.Time
	Model string
	// Gap is the longest time between two chunks in seconds, or the wait at the end of a request that may have hung.
	Gap float64
	// Chunks are the arrivals of its chunks, or nil.
	Chunks *slowest.Strip
	*slowest.Entry
}

// maxChunks limits the chunks of a request that are decoded.
const maxChunks = 1_000_000

// New returns a request that a pipeline passed to its Watch. It copies what it keeps.
func New(r *series.Contribution, span ptrace.Span, resource pcommon.Map) *Request {
	entry := slowest.NewEntry(r, spanreader.Facts(r.Vantage, span, resource))
	entry.Timeline = spanreader.Timeline(span)
	chunks := entry.Strip(maxChunks)
	entry.Timeline = nil // the chunks have it
	return &Request{
		Start: span.StartTimestamp().AsTime(), Model: attributes.Label(names.GenAIRequestModel, span.Attributes(), resource),
		Gap: entry.LongestGap(chunks), Chunks: chunks, Entry: entry,
	}
}

// estimates has the number that decides whether a reason of slowest.Entry is an estimate.
var estimates = map[string]numbers.ID{
	names.PhaseQueue: numbers.QueueDuration, names.PhasePrefill: numbers.PrefillDuration, names.PhaseDecode: numbers.DecodeDuration,
	names.PhaseNetwork: numbers.NetworkDuration, names.PhaseTransfer: numbers.TransferDuration, slowest.ReasonStalls: numbers.StallDuration,
}

// IsEstimate reports whether a number is an estimate.
func (r *Request) IsEstimate(id numbers.ID) bool { return slices.Contains(r.Estimated, id.Name()) }

// ReasonEstimated reports whether the length of the phase that took most of the time is an estimate.
func (r *Request) ReasonEstimated() bool {
	id, ok := estimates[r.Reason()]
	return ok && r.IsEstimate(id)
}

// Breaches returns the SLOs that the request breached. `all` is among them only if no other is.
func (r *Request) Breaches() []string {
	if len(r.Breached) == 1 {
		return r.Breached
	}
	return slices.DeleteFunc(slices.Clone(r.Breached), func(name string) bool { return name == names.SLOAll })
}

// Seconds formats a duration of the request. An estimate begins with ~.
func (r *Request) Seconds(id numbers.ID) string {
	text := terminal.Duration(r.Value(id))
	if r.IsEstimate(id) && !math.IsNaN(r.Value(id)) {
		return "~" + text
	}
	return text
}

// Stalled formats number and length of the stalls.
func (r *Request) Stalled() string {
	if !(r.Stalls > 0) {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", Count(r.Stalls), terminal.Duration(r.StallSeconds))
}

// Count formats a number of tokens or stalls.
func Count(n float64) string {
	if math.IsNaN(n) {
		return "-"
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}
