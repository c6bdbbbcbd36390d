// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

type prompts struct {
	Range string `json:"range"`
	Seen  *seen  `json:"vantage"`
	// CachedFrom is the smallest share of cached tokens of a cached prompt. It is missing if one token is enough.
	CachedFrom number         `json:"cached_from"`
	Buckets    []promptBucket `json:"buckets"`
}

type promptBucket struct {
	From     uint64   `json:"from_tokens"`
	To       *uint64  `json:"to_tokens"`
	Uncached *Summary `json:"uncached"`
	Cached   *Summary `json:"cached"`
	// Together has the prompts of a bucket in which it is not known of all whether they were cached.
	Together *Summary `json:"together"`
}

// prompts answers by the bands of the input tokens or, without such a dimension, by series.PromptClass.
func (p *Page) prompts(q *query) (any, error) {
	if lengths := p.banded(names.GenAIInputTokens); lengths >= 0 {
		return p.bandedPrompts(q, lengths), nil
	}
	view := p.view(q)
	want := q.filter.together()
	want.Prompts = true
	part := &p.newSelection(q).add(view.Slots(), want).Parts[0]
	answer := &prompts{Range: q.period.name, Seen: q.seen, CachedFrom: missing, Buckets: []promptBucket{}}
	for c := range series.PromptClass(series.PromptClasses) {
		values := summarize(part.Prompts(c))
		if values == nil {
			continue
		}
		first, last := c.Lengths()
		if n := len(answer.Buckets); n == 0 || answer.Buckets[n-1].From != first {
			bucket := promptBucket{From: first}
			if last > 0 {
				bucket.To = &last
			}
			answer.Buckets = append(answer.Buckets, bucket)
		}
		bucket := &answer.Buckets[len(answer.Buckets)-1]
		if c.Cached() {
			bucket.Cached = values
		} else {
			bucket.Uncached = values
		}
	}
	return answer, nil
}

// banded returns the index of the dimension with bands of an attribute, or -1.
func (p *Page) banded(attribute string) int {
	return slices.IndexFunc(p.Dimensions, func(d series.Dimension) bool { return d.Attribute == attribute && len(d.Bands) > 0 })
}

// bandedPrompts answers by the bands of a dimension. Prompts whose length is unknown are left out. A dimension with
// bands of the cached share divides each band at its first bound.
func (p *Page) bandedPrompts(q *query, lengths int) *prompts {
	bounds, shares := p.Dimensions[lengths].Bands, p.banded(numbers.CachedInputShare.Attribute())
	answer := &prompts{Range: q.period.name, Seen: q.seen, CachedFrom: missing, Buckets: []promptBucket{}}
	if shares >= 0 {
		answer.CachedFrom = number(p.Dimensions[shares].Bands[0])
	}
	sums := p.promptSums(q, lengths, shares)
	for i := range sums {
		bucket := promptBucket{From: 1}
		if i > 0 {
			bucket.From = uint64(math.Ceil(bounds[i-1]))
		}
		if i < len(bounds) {
			last := uint64(math.Ceil(bounds[i])) - 1
			bucket.To = &last
		}
		all, cached := sums[i][0].Parts[0].Of(numbers.TimeToFirstToken), sums[i][1].Parts[0].Of(numbers.TimeToFirstToken)
		uncached, apart := all, true
		if shares < 0 {
			uncached, cached = byClass(&sums[i][0].Parts[0])
			apart = uncached.Count()+cached.Count() == all.Count()
		}
		if apart {
			bucket.Uncached, bucket.Cached = summarize(uncached), summarize(cached)
		} else {
			bucket.Together = summarize(all)
		}
		if bucket.Uncached != nil || bucket.Cached != nil || bucket.Together != nil {
			answer.Buckets = append(answer.Buckets, bucket)
		}
	}
	return answer
}

// promptSums adds up the selected series by the band of the length. The second sum of a band has the series above
// the first bound of the cached share.
func (p *Page) promptSums(q *query, lengths, shares int) [][2]history.Sum {
	bands, cachedBands := series.NewBands(p.Dimensions[lengths].Bands), (*series.Bands)(nil)
	if shares >= 0 {
		cachedBands = series.NewBands(p.Dimensions[shares].Bands)
	}
	sums, known := make([][2]history.Sum, len(p.Dimensions[lengths].Bands)+1), map[history.Key]*history.Sum{}
	find := func(key history.Key) *history.Sum {
		id := series.LabelsOf(key.Value())
		if id.Overflow || !q.filter.selects(&id) {
			return nil
		}
		band, ok := bands.Index(id.Dimensions[lengths])
		if !ok {
			return nil
		}
		if cachedBands != nil {
			if share, ok := cachedBands.Index(id.Dimensions[shares]); ok && share > 0 {
				return &sums[band][1]
			}
		}
		return &sums[band][0]
	}
	want := q.filter.together(numbers.TimeToFirstToken)
	want.Prompts = shares < 0
	view := p.view(q)
	for slot := range view.Slots() {
		slot.AddTo(func(key history.Key) *history.Sum {
			sum, ok := known[key]
			if !ok {
				sum = find(key)
				known[key] = sum
			}
			return sum
		}, want)
	}
	return sums
}

// byClass returns the times to first token of prompts without and with cached tokens, which series from metrics
// do not have.
func byClass(part *history.Part) (uncached, cached *sketch.Sketch) {
	uncached, cached = new(sketch.Sketch), new(sketch.Sketch)
	for c := range series.PromptClass(series.PromptClasses) {
		if c.Cached() {
			cached.Merge(part.Prompts(c))
		} else {
			uncached.Merge(part.Prompts(c))
		}
	}
	return uncached, cached
}
