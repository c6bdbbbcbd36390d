// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"math/rand/v2"
	"time"
)

// backoff is the delay between retries. It doubles from first to longest.
type backoff struct {
	first, longest time.Duration
	last           time.Duration
}

// next returns the next delay, with a jitter of up to 20%.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.first), b.longest)
	return b.last - b.last/5 + rand.N(2*b.last/5+1) //nolint:gosec // a jitter needs no secure random numbers
}

func (b *backoff) reset() { b.last = 0 }
