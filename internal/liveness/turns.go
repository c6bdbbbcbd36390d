// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"slices"
	"time"
)

// maxTurns limits the first tokens that are remembered. It counts requests that overtook one that still waits.
const maxTurns = 256

// turns remember first tokens, so that the turn of a request is known: it begins when a request that began earlier has
// its first token. Only those are kept that no later first token of an earlier request makes useless, so that
// both times rise.
type turns []turn

type turn struct{ begin, first time.Duration }

// add notes the first token of a request that began at begin.
func (t *turns) add(begin, now time.Duration) {
	rest, _ := t.search(begin)
	if rest == maxTurns {
		copy(*t, (*t)[1:])
		rest--
	}
	*t = append((*t)[:rest], turn{begin, now})
}

// before returns the last first token of a request that began before that, or 0.
func (t *turns) before(begin time.Duration) time.Duration {
	i, _ := t.search(begin)
	if i == 0 {
		return 0
	}
	return (*t)[i-1].first
}

func (t *turns) search(begin time.Duration) (int, bool) {
	return slices.BinarySearchFunc(*t, begin, func(t turn, begin time.Duration) int { return cmp.Compare(t.begin, begin) })
}
