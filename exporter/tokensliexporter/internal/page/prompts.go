// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/tokenpulse/tokenpulse/internal/series"

type prompts struct {
	Range   string         `json:"range"`
	Buckets []promptBucket `json:"buckets"`
}

type promptBucket struct {
	From     uint64   `json:"from_tokens"`
	To       *uint64  `json:"to_tokens"`
	Uncached *Summary `json:"uncached"`
	Cached   *Summary `json:"cached"`
}

func (p *Page) prompts(q *query) (any, error) {
	view := p.view(q)
	want := q.filter.together()
	want.Prompts = true
	part := &p.newSelection(q).add(view.Slots(), want).Parts[0]
	answer := &prompts{Range: q.period.name, Buckets: []promptBucket{}}
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
