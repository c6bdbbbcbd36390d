// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// verdictCounters counts the requests of a series by SLO. The zero value is empty. It
// holds at most slo.MaxSLOs SLOs, and names.SLOAll.
type verdictCounters map[string]*verdictCounter

type verdictCounter struct {
	start    time.Time
	requests [slo.Verdicts]uint64
}

// add counts the verdicts on a request. It returns the number of verdicts that only
// `all` counted.
func (c *verdictCounters) add(verdicts *slo.VerdictSet, now time.Time) (dropped int) {
	dropped = verdicts.Dropped()
	for name, verdict := range verdicts.All {
		if counter := c.counter(name, now); counter != nil {
			counter.requests[verdict]++
		} else {
			dropped++
		}
	}
	return dropped
}

// counter returns the counter of an SLO, or nil at the limit.
func (c *verdictCounters) counter(name string, now time.Time) *verdictCounter {
	if counter := (*c)[name]; counter != nil {
		return counter
	}
	if *c == nil {
		*c = verdictCounters{}
	}
	if len(*c) >= slo.MaxSLOs+1 {
		return nil
	}
	counter := &verdictCounter{start: now}
	(*c)[strings.Clone(name)] = counter // name is part of a span
	return counter
}

// snapshot appends the counters in the order of their names.
func (c verdictCounters) snapshot(dst []SLOSnapshot) []SLOSnapshot {
	for name, counter := range c {
		dst = append(dst, SLOSnapshot{Name: name, Start: counter.start, Requests: counter.requests})
	}
	slices.SortFunc(dst, func(a, b SLOSnapshot) int { return strings.Compare(a.Name, b.Name) })
	return dst
}
