// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// wiring looks for pipelines that run without an error and lose numbers.
type wiring struct {
	doubts *diagnostics.Doubts
	// latency is what model calls lack that no processor has read.
	latency diagnostics.Lacking
}

// inspect is called with each span. processed is false if no processor has read it.
func (w *wiring) inspect(span ptrace.Span, processed bool) {
	if processed {
		w.latency.Has()
		if state := span.TraceState().AsRaw(); state != "" && !IsAggregated(span) {
			w.inspectSampling(state)
		}
		return
	}
	if w.latency.Met() || !looksLikeModelCall(span) {
		return
	}
	w.latency.Lacks()
	w.doubts.Report(diagnostics.SpansUnread, w.latency.Facts(), "")
}

// looksLikeModelCall reports whether a span has one of the attributes that most model calls have before
// token_latency reads them.
func looksLikeModelCall(span ptrace.Span) bool {
	for key := range span.Attributes().All() {
		switch key {
		case names.Timeline, names.GenAIRequestModel, "llm.model_name":
			return true
		}
	}
	return false
}

// IsAggregated reports whether the receiver of a span counts its request itself, before it samples the span.
func IsAggregated(span ptrace.Span) bool {
	v, ok := span.Attributes().Get(names.Aggregated)
	return ok && v.Bool()
}

func (w *wiring) inspectSampling(state string) {
	share, ok := samplingShare(state)
	if !ok || share >= 1 {
		return
	}
	w.doubts.Report(diagnostics.SpansSampled, diagnostics.Facts{Cases: 1}, "", zap.Float64("share", share))
}

// samplingShare returns the share of spans that a sampler kept: 1 - T / 2^56, where T is
// the threshold `th` of the member `ot` of a tracestate, in hexadecimal digits of which
// trailing zeros are omitted.
func samplingShare(state string) (share float64, ok bool) {
	const digits = 14
	for member := range strings.SplitSeq(state, ",") {
		fields, isOT := strings.CutPrefix(strings.TrimSpace(member), "ot=")
		if !isOT {
			continue
		}
		for field := range strings.SplitSeq(fields, ";") {
			threshold, isThreshold := strings.CutPrefix(field, "th:")
			if !isThreshold || len(threshold) > digits {
				continue
			}
			t, err := strconv.ParseUint(threshold+strings.Repeat("0", digits-len(threshold)), 16, 64)
			return 1 - float64(t)/(1<<56), err == nil && threshold != ""
		}
	}
	return 0, false
}
