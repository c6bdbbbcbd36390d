package latency

import "time"

// Deadlines are what the fluidity index measures a stream against.
type Deadlines struct {
	// FirstToken is the deadline of the first token after the request's start.
	FirstToken time.Duration
	// NextToken is the deadline of each further token after the last deadline.
	NextToken time.Duration
}

// MaxDeadline is the longest deadline there is: arithmetic on a chunk of
// timeline.MaxTokensPerChunk tokens stays within 64 bits.
const MaxDeadline = time.Hour

func (d Deadlines) on() bool { return d.FirstToken > 0 && d.NextToken > 0 }

// fluidity counts met and missed deadlines as Etalon defines them
// (https://arxiv.org/abs/2407.07000): tokens that come early leave slack for
// later ones, a token that comes late has missed every deadline that passed
// while the user waited, and the count starts anew from it.
//
// All times are whole nanoseconds, because with floats exact multiples of a
// deadline flip. The counts are floats: whole and exact up to 2^53, and they
// cannot overflow.
type fluidity struct {
	deadlines   Deadlines
	started     bool
	slack       time.Duration
	met, missed float64
}

const maxSlack = time.Duration(1) << 62

// start takes the first chunk. The tokens that it brings beside the first cost
// no time.
func (f *fluidity) start(afterStart time.Duration, tokens int64) {
	f.started = true
	if late := afterStart - f.deadlines.FirstToken; late > 0 {
		f.missed = 1 + float64(late/f.deadlines.NextToken)
	} else {
		f.met, f.slack = 1, -late
	}
	f.take(0, tokens-1)
}

// chunk takes a later chunk, whose gap is shared out among its tokens.
func (f *fluidity) chunk(gap time.Duration, tokens int64) {
	share, rest := gap/time.Duration(tokens), int64(gap)%tokens
	f.take(share, tokens-rest)
	f.take(share+1, rest)
}

// take takes tokens that come one after the other, each wait after the one
// before. It does not count them one by one: at a steady pace they are on time
// as long as the slack lasts, and late from then on.
func (f *fluidity) take(wait time.Duration, tokens int64) {
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

// index is the share of deadlines that were met.
func (f *fluidity) index() float64 { return 1 - f.missed/(f.met+f.missed) }
