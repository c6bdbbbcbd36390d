// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// State is what the table knows of the replicas of one series for one objective.
type State struct {
	Series string
	Objective
	// Answer is the limit of one replica.
	Answer
	// Replicas are those with a request in the last minutes, by name. Without one, the present load is unknown: none has been seen for two
	// minutes, so that others may be missing.
	Replicas []ReplicaLoad
	// Load is their total.
	Load Load

	mean Load // of a request
}

// ReplicaLoad is what a replica is offered now: requests of all series, at their mean size.
type ReplicaLoad struct {
	Replica string
	Load    Load
}

// Known reports whether limit and present load are known.
func (s *State) Known() bool { return s.Reason == "" && len(s.Replicas) > 0 }

// TotalLimit returns the limit of all replicas together.
func (s *State) TotalLimit() Load {
	return s.Limit.times(float64(len(s.Replicas)))
}

// TotalUtilization returns that of all replicas together.
func (s *State) TotalUtilization() float64 { return s.Utilization(s.Load) / float64(len(s.Replicas)) }

// Room returns how many further requests per second of mean size the replicas can take within the limit, together.
func (s *State) Room() float64 {
	if u := s.TotalUtilization(); u > 0 {
		return s.Load[Requests] * max(0, 1/u-1)
	}
	return s.TotalLimit()[Requests]
}

// ReplicasNeeded returns the least number of replicas whose limit is not below a load.
func (s *State) ReplicasNeeded(load Load) float64 {
	return math.Ceil(max(0, s.Utilization(load)-rounding))
}

// rounding keeps a load that is the limit of n replicas at n.
const rounding = 1e-9

// Sized returns the load of requests per second of mean size.
func (s *State) Sized(requests float64) Load { return s.mean.times(requests) }

// Visit calls visit with each state, by series and objective. visit must not call the table.
func (t *Table) Visit(now time.Time, visit func(*State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	on := map[*subject][]present{}
	for _, i := range t.instances {
		p := present{name: i.name}
		if p.rate, p.slots = i.rate(now); p.slots == 0 {
			continue
		}
		for _, of := range i.shares {
			on[of.of] = append(on[of.of], p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.subjects)) {
		s := t.subjects[key]
		replicas := on[s]
		slices.SortFunc(replicas, func(a, b present) int { return strings.Compare(a.name, b.name) })
		for n := range s.limits {
			state := State{Series: s.key, Objective: t.objectives[n], Answer: s.limits[n].Answer(s.at(now)), mean: s.limits[n].recent.perRequest()}
			state.load(replicas)
			visit(&state)
		}
	}
}

// present is the present rate of a replica, and of how many slots it is known.
type present struct {
	name  string
	rate  float64
	slots int64
}

func (s *State) load(replicas []present) {
	if !slices.ContainsFunc(replicas, func(p present) bool { return p.slots >= settled }) {
		return
	}
	for _, p := range replicas {
		load := s.Sized(p.rate)
		load[Requests] = p.rate
		s.Replicas = append(s.Replicas, ReplicaLoad{p.name, load})
		for k := range load {
			s.Load[k] += load[k]
		}
	}
}
