// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// engine is what the receivers of this process know of an engine.
type engine struct {
	engines.Evidence

	Since number `json:"since"` // a number, as all times of this API
}

// maxEngines limits the engines of `now`.
const maxEngines = 20

// attention orders states by how soon an operator needs to look.
var attention = [liveness.States]int{
	liveness.Stuck: 0, liveness.Down: 1, liveness.Slow: 2, liveness.Unknown: 3, liveness.Producing: 4, liveness.Idle: 5,
}

// statuses returns those of all engines, worst first, then by name, or nil if no receiver of this process judges engines.
func (p *Page) statuses() []liveness.Status {
	all := p.Engines()
	slices.SortStableFunc(all, func(a, b liveness.Status) int { return attention[a.State] - attention[b.State] })
	return all
}

func listEngines(statuses []liveness.Status) []engine {
	if statuses == nil {
		return nil
	}
	now, all := engines.Now(), []engine{}
	for i := range statuses {
		e := engine{engines.EvidenceOf(now, &statuses[i]), missing}
		if e.Evidence.Since != nil {
			e.Since = seconds(*e.Evidence.Since)
		}
		all = append(all, e)
	}
	return all
}

// setEngines sets the engines that need attention first, and the number of all.
func (n *now) setEngines(p *Page) {
	all := p.statuses()
	n.Engines, n.EnginesTotal = listEngines(all[:min(len(all), maxEngines)]), totalOf(all)
}

func totalOf(statuses []liveness.Status) *int {
	if statuses == nil {
		return nil
	}
	total := len(statuses)
	return &total
}

type enginesAnswer struct {
	Engines []engine `json:"engines"`
}

func (p *Page) engines(*query) (any, error) { return &enginesAnswer{listEngines(p.statuses())}, nil }
