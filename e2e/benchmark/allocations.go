// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// allocatingRequests is how many requests the allocations are counted for.
const allocatingRequests = 1_000

// allocationTable shows the allocations of a request, per stream in it and for each
// further stream: those of a request of twice as many streams, less those of the request.
func allocationTable(o options) (string, error) {
	header := []string{"allocations"}
	each, further := []string{"of an HTTP request, per stream in it"}, []string{"of each further stream in it"}
	for _, l := range loads[:len(fixedLoads)] {
		streams := float64(len(l.lengths))
		once, err := allocations(l.load, o)
		if err != nil {
			return "", err
		}
		l.lengths = slices.Repeat(l.lengths, 2)
		twice, err := allocations(l.load, o)
		if err != nil {
			return "", err
		}
		header, each, further = append(header, l.name), append(each, number(once/streams)), append(further, number((twice-once)/streams))
	}
	return table(header, [][]string{each, further}), nil
}

// allocations returns how many objects a Collector allocates per request. Its own counter
// includes what the HTTP server and each flush of series allocate.
func allocations(l load, o options) (float64, error) {
	c, err := start(collectorWith(o.collector, withPprof(kinds[wire].config)))
	if err != nil {
		return 0, err
	}
	defer c.stop()
	do := l.bodies(tokenStreams).inTurn(postTokens)
	if err := do.repeat(c, allocatingRequests/10); err != nil {
		return 0, err
	}
	before, err := c.allocated()
	if err != nil {
		return 0, err
	}
	if err := do.repeat(c, allocatingRequests); err != nil {
		return 0, err
	}
	after, err := c.allocated()
	return (after - before) / allocatingRequests, err
}

// allocated returns how many objects the Collector has allocated since its start.
func (c *collectorProcess) allocated() (float64, error) {
	profile, err := c.get(c.pprof, "/debug/pprof/heap?debug=1", "")
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(profile, []byte("\n# Mallocs = "))
	if !found {
		return 0, errors.New("the heap profile has no count of allocations")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	count, err := strconv.ParseFloat(string(line), 64)
	if err != nil {
		return 0, fmt.Errorf("the count of allocations is unreadable: %w", err)
	}
	return count, nil
}
