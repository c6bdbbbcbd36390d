package send

import "sync/atomic"

// Tally counts what is sent. It may be read at any time.
type Tally struct {
	// Requests counts streams that were told to their end, Tokens their tokens.
	Requests, Tokens atomic.Int64
	// Rejected counts what the receiver refused for good: events or streams.
	Rejected atomic.Int64
	// Retries counts requests that were sent again.
	Retries atomic.Int64
	// reason is why the receiver rejected something last.
	reason atomic.Pointer[string]
}

// RejectedBecause returns the receiver's own words for its last rejection.
func (t *Tally) RejectedBecause() string {
	if reason := t.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}

func (t *Tally) add(a answer) {
	if a.rejected == 0 {
		return
	}
	t.Rejected.Add(a.rejected)
	t.reason.Store(&a.reason)
}

// answer is what the receiver says to a request that it took: how much of it was
// wrong, and why.
type answer struct {
	rejected int64
	reason   string
}
