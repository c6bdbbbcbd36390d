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
	scope
	// CachedFrom is the smallest share of cached tokens of a cached prompt. It is missing if one token is enough.
	CachedFrom number         `json:"cached_from"`
	Buckets    []promptBucket `json:"buckets"`
}

type promptBucket struct {
	From uint64  `json:"from_tokens"`
	To   *uint64 `json:"to_tokens"`
	// The times to first token. Together has the prompts of a bucket in which it is not known of all whether they were cached.
	Uncached *Summary `json:"uncached"`
	Cached   *Summary `json:"cached"`
	Together *Summary `json:"together"`
	// TimePerOutputToken is that of cached and uncached prompts, which decode alike.
	TimePerOutputToken *Summary `json:"time_per_output_token"`
}

// add adds a bucket, unless it is empty.
func (a *prompts) add(b *promptBucket) {
	if b.Uncached != nil || b.Cached != nil || b.Together != nil || b.TimePerOutputToken != nil {
		a.Buckets = append(a.Buckets, *b)
	}
}

// prompts answers by the bands of the input tokens or, without such a dimension, by series.PromptLength.
func (p *Page) prompts(q *query) (any, error) {
	if lengths := p.banded(names.GenAIInputTokens); lengths >= 0 {
		return p.bandedPrompts(q, lengths), nil
	}
	want := q.filter.together()
	want.Prompts = true
	part := &p.newSelection(q).add(q.view.Slots(), want).Parts[0]
	answer := &prompts{scope: q.scope(), CachedFrom: missing, Buckets: []promptBucket{}}
	for length := range series.PromptLength(series.PromptLengths) {
		bucket := promptBucket{
			Uncached: summarize(part.TTFTOfPrompts(length, false)), Cached: summarize(part.TTFTOfPrompts(length, true)),
			TimePerOutputToken: summarize(part.TPOTOfPrompts(length)),
		}
		first, last := length.Tokens()
		if bucket.From = first; last > 0 {
			bucket.To = &last
		}
		answer.add(&bucket)
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
	answer := &prompts{scope: q.scope(), CachedFrom: missing, Buckets: []promptBucket{}}
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
		below, above := &sums[i][0].Parts[0], &sums[i][1].Parts[0]
		all, cached := below.Of(numbers.TimeToFirstToken), above.Of(numbers.TimeToFirstToken)
		uncached, apart := all, true
		if shares < 0 {
			uncached, cached = byCache(below)
			apart = uncached.Count()+cached.Count() == all.Count()
		}
		if apart {
			bucket.Uncached, bucket.Cached = summarize(uncached), summarize(cached)
		} else {
			bucket.Together = summarize(all)
		}
		var perToken sketch.Sketch
		perToken.Merge(below.Of(numbers.TimePerOutputToken))
		perToken.Merge(above.Of(numbers.TimePerOutputToken))
		bucket.TimePerOutputToken = summarize(&perToken)
		answer.add(&bucket)
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
	want := q.filter.together(numbers.TimeToFirstToken, numbers.TimePerOutputToken)
	want.Prompts = shares < 0
	for slot := range q.view.Slots() {
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

// byCache returns the times to first token of prompts without and with cached tokens, which series from metrics
// do not have.
func byCache(part *history.Part) (uncached, cached *sketch.Sketch) {
	uncached, cached = new(sketch.Sketch), new(sketch.Sketch)
	for length := range series.PromptLength(series.PromptLengths) {
		uncached.Merge(part.TTFTOfPrompts(length, false))
		cached.Merge(part.TTFTOfPrompts(length, true))
	}
	return uncached, cached
}
