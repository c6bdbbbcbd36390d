// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import "time"

// Deadlines are the token deadlines of the fluidity index.
type Deadlines struct {
	// FirstToken is the deadline of the first token, from the request's start.
	FirstToken time.Duration
	// NextToken is the deadline of each further token, from the deadline before.
	NextToken time.Duration
}

// MaxDeadline is the upper bound for a deadline. It keeps the arithmetic for a chunk
// of timeline.MaxTokensPerChunk tokens within 64 bits.
const MaxDeadline = time.Hour

func (d Deadlines) enabled() bool { return d.FirstToken > 0 && d.NextToken > 0 }

// fluidity counts met and missed deadlines as defined by Etalon
// (https://arxiv.org/abs/2407.07000). An early token adds slack for later tokens. A
// late token misses each deadline that passed during the wait, and resets the slack.
//
// Times are integer nanoseconds: with floats, exact multiples of a deadline could
// fall on either side. Counts are floats: exact up to 2^53, and they cannot overflow.
type fluidity struct {
	deadlines   Deadlines
	started     bool
	slack       time.Duration
	met, missed float64
}

const maxSlack = time.Duration(1) << 62

// start adds the first chunk. Its tokens after the first have no wait.
func (f *fluidity) start(afterStart time.Duration, tokens int64) {
	f.started = true
	if late := afterStart - f.deadlines.FirstToken; late > 0 {
		f.missed = 1 + float64(late/f.deadlines.NextToken)
	} else {
		f.met, f.slack = 1, -late
	}
	f.addTokens(0, tokens-1)
}

// addChunk adds a later chunk. Its gap is divided among its tokens.
func (f *fluidity) addChunk(gap time.Duration, tokens int64) {
	share, rest := gap/time.Duration(tokens), int64(gap)%tokens
	f.addTokens(share, tokens-rest)
	f.addTokens(share+1, rest)
}

// addTokens adds tokens that each arrive the given wait after the one before. It
// takes constant time: tokens are on time until the slack is used up, and late from
// then on.
func (f *fluidity) addTokens(wait time.Duration, tokens int64) {
	if tokens == 0 {
		return
	}
	deadline := f.deadlines.NextToken
	late := wait - deadline
	if late <= 0 {
		f.met += float64(tokens)
		f.slack = min(maxSlack, f.slack-late*time.Duration(tokens))
		return
	}
	onTime := min(tokens, int64(f.slack/late))
	f.met += float64(onTime)
	f.slack -= late * time.Duration(onTime)
	if tokens -= onTime; tokens == 0 {
		return
	}
	f.missed += float64((wait - f.slack) / deadline)
	f.missed += float64(wait/deadline) * float64(tokens-1)
	f.slack = 0
}

// index returns the share of deadlines that were met.
func (f *fluidity) index() float64 { return 1 - f.missed/(f.met+f.missed) }
