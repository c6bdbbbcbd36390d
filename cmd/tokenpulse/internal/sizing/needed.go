// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/workload"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
)

// Needed is how many replicas a load needs.
type Needed struct {
	// Load is that of all replicas.
	Load     capacity.Load
	Replicas int
}

// replicas returns how many replicas a load needs, at the load of a run for each.
func (r *Run) replicas(load capacity.Load) Needed {
	s := capacity.State{Answer: capacity.Answer{Limit: r.Load}}
	return Needed{load, int(s.ReplicasNeeded(load))}
}

// ForRequests returns what requests per second need whose mean size is that of the runs. Met must be set.
func (l *Limit) ForRequests(perSecond float64) Needed {
	load := capacity.Load{perSecond, perSecond * l.Met.Output, perSecond * l.Met.Prompt}
	return l.Met.replicas(load)
}

// uncached returns what a load needs whose prompts have as many cached tokens as those of the run.
func (r *Run) uncached(load capacity.Load) Needed {
	if r.Prompt > 0 {
		load[capacity.PromptTokens] *= r.Prompt / (r.Prompt + r.Cached)
	}
	return r.replicas(load)
}

// OfTrace is what a workload needs.
type OfTrace struct {
	Requests int
	Duration time.Duration
	// Output and Prompt are its mean tokens, cached ones included.
	Output, Prompt float64
	// Fits means that they are about those of the runs. Else the limit is not that of the workload.
	Fits bool
	// Sustained is the highest load of ten minutes, as capacity counts it in a Collector, and Minute that of one. A shorter workload has its
	// mean load.
	Sustained, Minute Needed
}

// ForTrace returns what a workload needs. A trace does not say which tokens of prompts are cached: their share is that of the runs. Met must be
// set.
func (l *Limit) ForTrace(t *workload.Trace) *OfTrace {
	of := &OfTrace{Requests: len(t.Requests), Duration: t.Duration()}
	var total capacity.Load
	for i := range t.Requests {
		add(&total, &t.Requests[i])
	}
	of.Output, of.Prompt = total[capacity.OutputTokens]/total[capacity.Requests], total[capacity.PromptTokens]/total[capacity.Requests]
	of.Fits = Alike(l.Met.Output, of.Output) && Alike(l.Met.Prompt+l.Met.Cached, of.Prompt)
	// From the first request to the last one, it is one less.
	perSecond(&total, max(1, of.Duration.Seconds())*float64(of.Requests)/float64(max(1, of.Requests-1)))
	p := peakOf(t)
	of.Sustained, of.Minute = l.Met.uncached(atLeast(total, p.Sustained)), l.Met.uncached(atLeast(total, p.Minute))
	return of
}

func add(to *capacity.Load, r *workload.Request) {
	to[capacity.Requests]++
	to[capacity.OutputTokens] += float64(r.Output)
	to[capacity.PromptTokens] += float64(r.Input)
}

func perSecond(load *capacity.Load, seconds float64) {
	for k := range load {
		load[k] /= seconds
	}
}

// atLeast returns a peak, or the mean of a time that is too short for it.
func atLeast(mean, peak capacity.Load) capacity.Load {
	for k := range peak {
		peak[k] = max(peak[k], mean[k])
	}
	return peak
}

func peakOf(t *workload.Trace) *capacity.Peak {
	p := &capacity.Peak{}
	for next := 0; next < len(t.Requests); {
		slot := t.Requests[next].Timestamp / capacity.Slot.Milliseconds()
		var load capacity.Load
		for ; next < len(t.Requests) && t.Requests[next].Timestamp/capacity.Slot.Milliseconds() == slot; next++ {
			add(&load, &t.Requests[next])
		}
		perSecond(&load, capacity.Slot.Seconds())
		p.Add(time.Unix(0, 0).Add(time.Duration(slot)*capacity.Slot), load)
	}
	return p
}
