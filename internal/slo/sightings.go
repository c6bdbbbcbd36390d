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

// Unjudged are the SLOs of objectives that had no verdict.
type Unjudged struct {
	// SLOs of objectives without a verdict, and Seen ones of the verdicts that there were, both sorted.
	SLOs, Seen []string
	// Requests that were recorded, and the time since the tracker began.
	Requests int64
	Ran      time.Duration
}

// Unjudged returns the SLOs of objectives that had no verdict so far.
func (t *Tracker) Unjudged(now time.Time) Unjudged {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sightings
	if len(s.unseen) == 0 {
		return Unjudged{}
	}
	return Unjudged{slices.Sorted(maps.Keys(s.unseen)), slices.Sorted(maps.Keys(s.seen)), int64(s.requests), now.Sub(s.since)}
}
