// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "time"

const (
	tick         = Slot / ticksPerSlot
	ticksPerSlot = 5
	// fading is what is kept from slot to slot: durations are those of about five minutes.
	fading = 0.95
)

// durations counts requests by the ticks from their beginning until they arrived: what they took, and how much later than others they came.
type durations struct {
	all   float64
	ticks [(held + 1) * ticksPerSlot]float32
}

func (d *durations) add(after time.Duration) {
	d.ticks[min(int(after/tick), len(d.ticks)-1)]++
	d.all++
}

func (d *durations) fade() {
	d.all *= fading
	for i := range d.ticks {
		d.ticks[i] *= fading
	}
}

// ended returns the share of the requests of a slot that have ended by now, if they arrive after as long as others. age is the time since
// the end of the slot.
func (d *durations) ended(age time.Duration) float64 {
	if d.all == 0 {
		return 0
	}
	first, sum, shorter := int(age/tick), 0.0, 0.0
	for i, n := range d.ticks[:min(len(d.ticks), first+ticksPerSlot)] {
		if i >= first {
			sum += shorter + float64(n)/2
		}
		shorter += float64(n)
	}
	return min(1, sum/ticksPerSlot/d.all)
}
