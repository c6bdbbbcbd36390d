// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "github.com/tokenpulse/tokenpulse/internal/names"

// MaxSLOs limits the SLOs without an objective that one request, and one series, has
// separate verdicts for. Further verdicts count toward `all` only. SLOs with an
// objective have places of their own: otherwise a sender could take theirs with invented
// names.
const MaxSLOs = 64

// Names is a set of SLO names.
type Names map[string]bool

// NamesOf returns the SLOs of objectives.
func NamesOf(objectives []Objective) Names {
	all := Names{}
	for i := range objectives {
		all[objectives[i].SLO] = true
	}
	return all
}

// Ending is the part of a request's outcome that the verdict on `all` depends on.
type Ending uint8

// The endings.
const (
	// Finished is a success, or a request that its client cancelled while tokens arrived.
	Finished Ending = iota
	// Failed is an error or an incomplete stream. It is bad, whatever its latencies.
	Failed
	// Stalled is a request that its client cancelled during a stall. It is bad, too.
	Stalled
	// Mistaken is a client mistake. It is not eligible, unless an SLO counts client mistakes as bad.
	Mistaken
	// Cut is a stream that the Collector ended. It is not eligible.
	Cut
)

// VerdictSet holds the verdicts on one request, which is Finished unless End is called, and
// on the trace of a root span. The zero value is empty.
type VerdictSet struct {
	// Objectives are the SLOs that MaxSLOs does not limit. Reset keeps them.
	Objectives Names

	each    []namedVerdict // each SLO once
	others  int            // SLOs among them that are limited by MaxSLOs
	overall Verdict        // the largest verdict, dropped ones included
	ending  Ending
	any     bool
	dropped int
}

type namedVerdict struct {
	slo     string
	verdict Verdict
}

// Add adds the verdict of one SLO, whose name must be a clean label value. Verdicts
// beyond MaxSLOs, and those of an SLO named `all`, count toward `all` only.
func (s *VerdictSet) Add(slo string, verdict Verdict) {
	s.overall = max(s.overall, verdict)
	s.any = true
	s.AddOfTrace(slo, verdict)
}

// AddOfTrace adds the verdict of an SLO on the trace, which does not count toward `all`.
func (s *VerdictSet) AddOfTrace(slo string, verdict Verdict) {
	for i := range s.each {
		if known := &s.each[i]; known.slo == slo {
			known.verdict = max(known.verdict, verdict)
			return
		}
	}
	reserved := s.Objectives[slo]
	if slo == names.SLOAll || !reserved && s.others >= MaxSLOs {
		s.dropped++
		return
	}
	if !reserved {
		s.others++
	}
	s.each = append(s.each, namedVerdict{slo, verdict})
}

// End sets how the request ended, which `all` depends on.
func (s *VerdictSet) End(ending Ending) { s.ending = ending }

// all returns the verdict on `all`, if an SLO applies.
func (s *VerdictSet) all() Verdict {
	switch s.ending {
	case Failed, Stalled:
		return Bad
	case Cut:
		return NotEligible
	case Mistaken:
		if s.overall != Bad {
			return NotEligible
		}
	}
	return s.overall
}

// Drop counts n verdicts that the caller did not read.
func (s *VerdictSet) Drop(n int) { s.dropped += n }

// Dropped returns the number of verdicts that count toward `all` only.
func (s *VerdictSet) Dropped() int { return s.dropped }

// Any reports whether there is a verdict: on the request, or only on its trace.
func (s *VerdictSet) Any() bool { return s.any || len(s.each) > 0 }

// Empty reports whether no SLO applies to the request.
func (s *VerdictSet) Empty() bool { return !s.any }

// All calls visit for `all` first, unless no SLO applies to the request, then for each
// SLO.
func (s *VerdictSet) All(visit func(slo string, verdict Verdict) bool) {
	if s.any && !visit(names.SLOAll, s.all()) {
		return
	}
	for _, v := range s.each {
		if !visit(v.slo, v.verdict) {
			return
		}
	}
}

// Reset empties the set and keeps its memory.
func (s *VerdictSet) Reset() {
	clear(s.each) // release the names, which are part of a span
	*s = VerdictSet{Objectives: s.Objectives, each: s.each[:0]}
}
