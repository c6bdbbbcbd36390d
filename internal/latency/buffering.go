// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import "time"

// The bounds of a buffered stream.
const (
	bufferedTokens   = 16
	bufferedFraction = 100 // of the time from start to last token
	bufferedPace     = time.Millisecond
)

// detectBuffering finds streams whose tokens arrived all at once after a wait. If the request's end
// replaces an unknown time of the last token, it is later than that time: a stream within the
// bounds is also within them by its last token.
func (d *derivation) detectBuffering(first Milestone) {
	tokens, known, _ := d.outputTokens()
	if d.request.StartUnknown || !d.decodeTime.Known || !known || tokens < bufferedTokens {
		return
	}
	decode := d.decodeTime.Value
	// Divisions of integers: neither bound can overflow, and both are exact.
	d.latency.Buffered = decode <= (first.Offset+decode)/bufferedFraction && int64(decode)/(tokens-1) < int64(bufferedPace)
}
