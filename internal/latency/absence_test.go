// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

func TestAnalyze_Absences(t *testing.T) {
	foreign := func(change func(r *Observed)) Observed {
		r := Observed{Duration: time.Second, TokensNotObserved: true, OutputTokens: optional.Of(int64(10))}
		change(&r)
		return r
	}
	stream, asked := Observed{Duration: time.Second}, Observed{Duration: time.Second, StreamAsked: true}
	tests := map[string]struct {
		request    Observed
		chunks     []chunk
		ttft, tpot Absence
	}{
		"all measured":                   {stream, contents(100, 200), Present, Present},
		"no token":                       {stream, nil, NoToken, NoToken},
		"no token, but usage":            {Observed{Duration: time.Second, OutputTokens: optional.Of(int64(3))}, nil, NoToken, NoToken},
		"one token":                      {stream, contents(100), Present, OneToken},
		"one chunk of a few tokens":      {stream, []chunk{{at: 100, tokens: 3}}, Present, OneToken},
		"two chunks, one reported token": {Observed{Duration: time.Second, OutputTokens: optional.Of(int64(1))}, contents(100, 200), Present, OneToken},
		"one chunk of many tokens":       {stream, []chunk{{at: 100, tokens: 16}}, Present, Buffered},
		"buffered":                       {stream, burst(990*ms, 16, 0), Present, Buffered},
		"asked for a stream, all tokens in one chunk": {asked, []chunk{{at: 990, tokens: 16}}, Present, NotStreamed},
		"asked for a stream, a few tokens in a chunk": {asked, []chunk{{at: 990, tokens: 15}}, Present, OneToken},
		"asked for a stream, which was held back":     {asked, burst(990*ms, 16, 0), Present, Buffered},
		"asked for a stream, all tokens at the end": {
			foreign(func(r *Observed) {
				r.StreamAsked, r.FirstToken, r.OutputTokens = true, firstTokenAt(time.Second), optional.Of(int64(16))
			}),
			nil, Present, NotStreamed,
		},
		"asked for a stream, came as a whole": {
			foreign(func(r *Observed) { r.StreamAsked, r.NotStreamed = true, true }), nil, NotStreamed, NotStreamed,
		},
		"start unknown":                {Observed{Duration: time.Second, StartUnknown: true}, contents(0, 200), NotReported, Present},
		"first token before the start": {stream, contents(-100, 200), Implausible, Present},
		"all tokens after the end":     {stream, contents(1100, 2200), Implausible, Implausible},
		"request that ends too early":  {Observed{Duration: -1}, contents(100, 200), Implausible, Implausible},

		"not reported":   {foreign(func(*Observed) {}), nil, NotReported, NotReported},
		"not streamed":   {foreign(func(r *Observed) { r.NotStreamed = true }), nil, NotStreamed, NotStreamed},
		"events dropped": {foreign(func(r *Observed) { r.EventsDropped = true }), nil, DroppedEvents, DroppedEvents},
		"milliseconds sent as seconds": {
			foreign(func(r *Observed) { r.FirstToken = firstTokenAt(250 * time.Second) }), nil, Implausible, Implausible,
		},
		"rejected by the reader": {foreign(func(r *Observed) { r.FirstTokenRejected = true }), nil, Implausible, Implausible},
		"rejected, then reported otherwise": {
			foreign(func(r *Observed) { r.FirstTokenRejected, r.FirstToken = true, firstTokenAt(100*ms) }), nil, Present, Present,
		},
		"unknown number of tokens": {
			foreign(func(r *Observed) { r.OutputTokens.Known, r.FirstToken = false, firstTokenAt(100*ms) }), nil, Present, NotReported,
		},
		"zero reported tokens":     {foreign(func(r *Observed) { r.OutputTokens.Value = 0 }), nil, NoToken, NoToken},
		"failed without a token":   {foreign(func(r *Observed) { r.OutputTokens.Known, r.Failed = false, true }), nil, NoToken, NoToken},
		"cancelled without usage":  {foreign(func(r *Observed) { r.OutputTokens.Known, r.Outcome = false, names.OutcomeCancelled }), nil, NoToken, NoToken},
		"failed after some tokens": {foreign(func(r *Observed) { r.Failed = true }), nil, NotReported, NotReported},
		"engine's decode longer than the request": {
			foreign(func(r *Observed) { r.FirstToken, r.Decode = firstTokenAt(100*ms), optional.Of(time.Minute) }), nil, Present, Implausible,
		},
		"engine's decode without a first token": {
			foreign(func(r *Observed) { r.Decode = optional.Of(500 * ms) }), nil, NotReported, Present,
		},

		// Of several reasons the first counts.
		"0 reported tokens, whatever the first token": {
			foreign(func(r *Observed) { r.FirstTokenRejected, r.OutputTokens.Value = true, 0 }), nil, NoToken, NoToken,
		},
		"0 reported tokens with a first token": {
			foreign(func(r *Observed) { r.FirstToken, r.OutputTokens.Value = firstTokenAt(ms), 0 }), nil, NoToken, NoToken,
		},
		"ambiguous unit, not streamed": {
			foreign(func(r *Observed) { r.AmbiguousUnit, r.NotStreamed = true, true }), nil, AmbiguousUnit, AmbiguousUnit,
		},
		"not read": {
			foreign(func(r *Observed) { r.NotRead = true }), nil, NotRead, NotRead,
		},
		"no token, not streamed": {
			foreign(func(r *Observed) { r.NotStreamed, r.OutputTokens.Value = true, 0 }), nil, NoToken, NoToken,
		},
		"not streamed, events dropped": {
			foreign(func(r *Observed) { r.NotStreamed, r.EventsDropped = true, true }), nil, NotStreamed, NotStreamed,
		},
		"not streamed, one token": {
			foreign(func(r *Observed) { r.NotStreamed, r.OutputTokens.Value = true, 1 }), nil, NotStreamed, NotStreamed,
		},
		"not reported, one token": {foreign(func(r *Observed) { r.OutputTokens.Value = 1 }), nil, NotReported, NotReported},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := analyze(t, standard, tt.request, tt.chunks)
			require.Equal(t, tt.ttft.String(), l.Absences[0].String(), "time to first token")
			require.Equal(t, tt.tpot.String(), l.Absences[1].String(), "time per output token")
			require.Equal(t, tt.request.StreamAsked && tt.tpot == NotStreamed, l.StreamStopped)
			require.Equal(t, tt.ttft == Present, l.Measures[numbers.TimeToFirstToken].Known)
			require.Equal(t, tt.tpot == Present, l.Measures[numbers.TimePerOutputToken].Known)
		})
	}
}
