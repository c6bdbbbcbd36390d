// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// timesPerToken returns the time per token in each band in milliseconds, -1 where it is missing.
func timesPerToken(l *Latency) (all []float64) {
	for id := numbers.TimePerTokenFrom0; id <= numbers.TimePerTokenFrom1000; id++ {
		if m := l.Measures[id]; m.Known {
			all = append(all, m.Value*1e3)
		} else {
			all = append(all, -1)
		}
	}
	return all
}

// paced returns n tokens one by one, each some milliseconds after the one before.
func paced(n int, pace func(position int) float64) (chunks []chunk) {
	at := 100.0
	for position := range n {
		if position > 0 {
			at += pace(position)
		}
		chunks = append(chunks, chunk{at, 1, timeline.Content})
	}
	return chunks
}

func TestAnalyze_TimePerTokenByPosition(t *testing.T) {
	byBand := func(position int) float64 { // a token that counts in another band than its own changes two means
		return []float64{1, 2, 4, 8}[slices.IndexFunc([]int{10, 100, 1000, 1 << 30}, func(end int) bool { return position < end })]
	}
	none := []float64{-1, -1, -1, -1}
	long := paced(1500, byBand)
	for situation, test := range map[string]struct {
		request Observed
		chunks  []chunk
		want    []float64
	}{
		"one by one":                        {Observed{}, long, []float64{1, 2, 4, 8}},
		"ten tokens":                        {Observed{}, long[:10], []float64{1, -1, -1, -1}},
		"eleven tokens":                     {Observed{}, long[:11], []float64{1, 2, -1, -1}},
		"a thousand tokens":                 {Observed{}, long[:1000], []float64{1, 2, 4, -1}},
		"one token":                         {Observed{}, long[:1], none},
		"no token":                          {Observed{}, nil, none},
		"a chunk over all bands":            {Observed{}, []chunk{{100, 1, timeline.Content}, {3100, 1500, timeline.Content}}, []float64{2, 2, 2, 2}},
		"the first chunk has no gap":        {Observed{}, []chunk{{100, 10, timeline.Content}, {130, 1, timeline.Content}}, []float64{-1, 30, -1, -1}},
		"a chunk that ends a band":          {Observed{}, []chunk{{100, 1, timeline.Content}, {190, 9, timeline.Content}, {220, 1, timeline.Content}}, []float64{10, 30, -1, -1}},
		"reasoning has positions":           {Observed{}, []chunk{{100, 10, timeline.Reasoning}, {130, 1, timeline.Content}}, []float64{-1, 30, -1, -1}},
		"a step back keeps positions":       {Observed{}, append(long[:9:9], chunk{50, 1, timeline.Content}, chunk{70, 1, timeline.Content}), []float64{1, 20, -1, -1}},
		"of several answers":                {Observed{Choices: 2}, long, none},
		"of one answer":                     {Observed{Choices: 1}, long[:11], []float64{1, 2, -1, -1}},
		"chunks count as one":               {Observed{TokensAssumed: true}, long, none},
		"frames":                            {Observed{Frames: true}, long, none},
		"chunks are missing":                {Observed{LastChunksDropped: 1}, long, none},
		"buffered":                          {Observed{}, paced(32, func(int) float64 { return 0.01 }), none},
		"the start was not observed":        {Observed{StartUnknown: true}, long[:11], []float64{1, 2, -1, -1}},
		"longer gaps than the request's":    {Observed{Duration: 25 * ms}, []chunk{{0, 1, timeline.Content}, {20, 1, timeline.Content}, {60, 1, timeline.Content}}, []float64{20, -1, -1, -1}},
		"the request ends before it starts": {Observed{Duration: -ms}, []chunk{{0, 1, timeline.Content}, {0, 1, timeline.Content}}, none},
	} {
		t.Run(situation, func(t *testing.T) {
			if test.request.Duration == 0 {
				test.request.Duration = time.Minute
			}
			l := analyze(t, standard, test.request, test.chunks)
			require.InDeltaSlice(t, test.want, timesPerToken(l), 1e-9)
			withoutThem := standard
			for id := numbers.TimePerTokenFrom0; id <= numbers.TimePerTokenFrom1000; id++ {
				withoutThem.Omitted[id] = true
			}
			l = analyze(t, withoutThem, test.request, test.chunks)
			require.Equal(t, none, timesPerToken(l))
		})
	}
}
