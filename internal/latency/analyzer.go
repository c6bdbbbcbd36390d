// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package latency derives the latency of one model request from its observations, by
// the formulas of definitions.md. It walks the request's timeline once.
package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Analyzer derives the latency of one request after another. It reuses buffers, which
// grow with the range of the gaps up to 64 KB, not with the number of tokens. It is
// not safe for concurrent use.
type Analyzer struct {
	options  Options
	arrivals arrivals
	audio    audio
}

// longestRequest is the largest value of a sketch, 34 years. A longer span has a
// timestamp that was never set.
const longestRequest = sketch.MaxValue * time.Second

// NewAnalyzer returns an analyzer with the given options.
func NewAnalyzer(options Options) *Analyzer { return &Analyzer{options: options} }

// Analyze derives the latency of a request. The offsets of its timeline are relative
// to the request's start. A malformed timeline is the only error.
func (a *Analyzer) Analyze(request Observed, walk timeline.Walk) (latency Latency, err error) {
	err = a.AnalyzeInto(&latency, &request, walk)
	return latency, err
}

// AnalyzeInto is Analyze for callers that reuse the memory of the result, which is the zero value
// after an error. It may change the request.
func (a *Analyzer) AnalyzeInto(latency *Latency, request *Observed, walk timeline.Walk) error {
	a.arrivals.reset(&a.options)
	*latency = Latency{}
	limit := min(request.Duration, longestRequest)
	tokens, audio := walk.Split()
	a.arrivals.speech = timeline.SpeechIn(audio)
	if err := a.arrivals.read(tokens, limit, a.options.StallThreshold, latency); err != nil {
		*latency = Latency{}
		return err
	}
	a.audio.read(audio, limit, latency)
	d := derivation{request: request, limit: limit, arrivals: &a.arrivals, audio: &a.audio, options: &a.options, latency: latency}
	d.derive()
	latency.finish(&a.options.Omitted, &a.arrivals, &a.audio)
	return nil
}
