// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Recording is the time of recorded requests: from the start of the first one until the end of the last one.
type Recording struct{ Begin, End time.Time }

// maxSteps limits the steps of a recording, besides one that is cut at each end.
const maxSteps = 100

// recordingSteps are multiples of all widths of slots up to their own, so that no slot spans two. Beyond them, steps are
// multiples of the last one.
var recordingSteps = [...]time.Duration{
	series.HistorySlot, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
	15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// Step returns the steps of a recording.
func (r *Recording) Step() time.Duration {
	length := r.End.Sub(r.Begin)
	for _, step := range recordingSteps {
		if length <= maxSteps*step {
			return step
		}
	}
	last := recordingSteps[len(recordingSteps)-1]
	return last * (1 + length/(maxSteps*last))
}
