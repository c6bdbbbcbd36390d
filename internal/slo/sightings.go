// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// An objective without a verdict after both of these limits is most likely misspelled.
const (
	unseenAfter         = 15 * time.Minute
	unseenAfterRequests = 100
)

// sightings finds objectives whose SLO no request was judged by. The SLO may be
// defined by a processor in another Collector, so only the spans can show its name.
type sightings struct {
	since    time.Time
	requests uint64
	unseen   map[string]bool // SLOs of objectives without a verdict
	// seen holds SLO names of verdicts, at most MaxSLOs. It is filled while unseen has
	// entries.
	seen map[string]bool
}

func newSightings(objectives []Objective, now time.Time) sightings {
	s := sightings{since: now, unseen: map[string]bool{}, seen: map[string]bool{}}
	for i := range objectives {
		s.unseen[objectives[i].SLO] = true
	}
	return s
}

func (s *sightings) add(slo string) {
	if len(s.unseen) == 0 {
		return
	}
	delete(s.unseen, slo)
	if slo != names.SLOAll && !s.seen[slo] && len(s.seen) < MaxSLOs {
		s.seen[strings.Clone(slo)] = true // slo is part of a span
	}
}

// undefinedAfterRequests is enough for an SLO that nothing is known to define.
const undefinedAfterRequests = 20

// Undefined returns the SLOs of objectives that had no verdict after a few requests, and that are not among
// the defined ones, sorted.
func (t *Tracker) Undefined(defined []string) (objectives []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for slo := range t.sightings.unseen {
		if t.sightings.requests >= undefinedAfterRequests && slo != names.SLOAll && !slices.Contains(defined, slo) {
			objectives = append(objectives, slo)
		}
	}
	slices.Sort(objectives)
	return objectives
}

// Unseen returns the SLOs of objectives that had no verdict although the tracker has
// run for 15 minutes and recorded 100 requests, and the SLO names of the verdicts that
// it did record, both sorted.
func (t *Tracker) Unseen(now time.Time) (objectives, seen []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sightings
	if len(s.unseen) == 0 || s.requests < unseenAfterRequests || now.Sub(s.since) < unseenAfter {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(s.unseen)), slices.Sorted(maps.Keys(s.seen))
}
