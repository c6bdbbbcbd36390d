// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "time"

// Peak finds the highest load of a recorded time. It is not for concurrent use.
type Peak struct {
	// Minute is the highest average over about a minute, and Sustained the highest load at which a Limit would count a slot, of each kind.
	// Minute is 0 in the first minute, and Sustained in the first ten: the load before is unknown.
	Minute, Sustained Load

	averages averages
}

// Add adds the load of a slot. Slots come in order; one that is left out is empty.
func (p *Peak) Add(start time.Time, load Load) {
	p.averages.add(start, &load)
	seen, minute, sustained := p.averages.seen(), p.averages.of(p.averages.short, shortTime), p.averages.sustained()
	for k := range load {
		if seen >= shortTime {
			p.Minute[k] = max(p.Minute[k], minute[k])
		}
		if seen >= longTime {
			p.Sustained[k] = max(p.Sustained[k], sustained[k])
		}
	}
}
