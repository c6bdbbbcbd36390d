// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// allocatingRequests is how many requests the allocations are counted for.
const allocatingRequests = 200

// allocationTable shows the allocations per stream of several lengths.
func allocationTable(o options) (string, error) {
	header, row := []string{"allocations per stream"}, []string{wire}
	for _, l := range loads[:len(fixedLoads)] {
		count, err := allocations(l.load, o)
		if err != nil {
			return "", err
		}
		header, row = append(header, l.name), append(row, number(count))
	}
	return table(header, [][]string{row}), nil
}

// allocations returns how many objects a Collector allocates per stream. Its own counter
// includes what each HTTP request and each flush of series allocates.
func allocations(l load, o options) (float64, error) {
	c, err := start(collectorWith(o.collector, withPprof(kinds[wire].config)))
	if err != nil {
		return 0, err
	}
	defer c.stop()
	do := l.bodies(tokenStreams).inTurn(postTokens)
	if err := do.repeat(c, allocatingRequests); err != nil {
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
	return (after - before) / float64(allocatingRequests*len(l.lengths)), err
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
