// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// verdictCounters counts the requests of a series by SLO. The zero value is empty. It
// holds names.SLOAll, the SLOs with objectives, and at most slo.MaxSLOs others.
type verdictCounters struct {
	byName map[string]*verdictCounter
	others int
}

type verdictCounter struct {
	start    time.Time
	requests [slo.Verdicts]uint64
	reported [slo.Verdicts]uint64 // of requests, to the history
	bad      Exemplar             // the latest bad request
}

// add counts the verdicts on a request, whose exemplar the bad ones keep. It returns the number of verdicts that only
// `all` counted.
func (c *verdictCounters) add(verdicts *slo.VerdictSet, objectives slo.Names, exemplar *Exemplar, now time.Time) (dropped int) {
	dropped = verdicts.Dropped()
	for name, verdict := range verdicts.All {
		if counter := c.counter(name, objectives, now); counter != nil {
			counter.requests[verdict]++
			if verdict == slo.Bad && exemplar.Set() {
				counter.bad = *exemplar
				counter.bad.Value = 1 // what the request adds to the counter
			}
		} else {
			dropped++
		}
	}
	return dropped
}

// counter returns the counter of an SLO, or nil at the limit.
func (c *verdictCounters) counter(name string, objectives slo.Names, now time.Time) *verdictCounter {
	if counter := c.byName[name]; counter != nil {
		return counter
	}
	if name != names.SLOAll && !objectives[name] {
		if c.others >= slo.MaxSLOs {
			return nil
		}
		c.others++
	}
	if c.byName == nil {
		c.byName = map[string]*verdictCounter{}
	}
	counter := &verdictCounter{start: now}
	c.byName[strings.Clone(name)] = counter // name is part of a span
	return counter
}

// snapshot appends the counters in the order of their names.
func (c *verdictCounters) snapshot(dst []SLOSnapshot) []SLOSnapshot {
	for name, counter := range c.byName {
		dst = append(dst, SLOSnapshot{Name: name, Start: counter.start, Requests: counter.requests, Bad: counter.bad})
	}
	slices.SortFunc(dst, func(a, b SLOSnapshot) int { return strings.Compare(a.Name, b.Name) })
	return dst
}
