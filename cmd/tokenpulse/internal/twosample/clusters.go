// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"maps"
	"slices"
)

// count is requests, or tokens, and how many of them are bad: slower than a threshold, or bad for an SLO.
type count struct{ n, bad float64 }

func (c *count) add(other count) {
	c.n += other.n
	c.bad += other.bad
}

// counts are those of a group, by the band of the prompt.
type counts [bandCount]count

func (c *counts) add(other *counts) {
	for b := range c {
		c[b].add(other[b])
	}
}

// clusters are the groups of an arm whose requests depend on each other. Each way to group has all requests.
type clusters struct {
	total    counts
	blocks   [][]counts // by run, in the order of time
	replicas []counts
	runs     []counts
}

// maxAnalyzed is the number of blocks up to which the noise of single requests does not hide how blocks depend on each other.
const maxAnalyzed = 40

// counter counts the requests of a cell, and those of them that are bad.
type counter func(band int, c *cell) count

// clusters counts the requests of an arm.
func (a *Arm) clusters(of counter) (all clusters) {
	countsOf := func(g *group) (c counts) {
		for b, cell := range g {
			if cell != nil {
				c[b] = of(b, cell)
			}
		}
		return c
	}
	all.blocks, all.runs = make([][]counts, len(a.runs)), make([]counts, len(a.runs))
	for _, key := range slices.SortedFunc(maps.Keys(a.blocks), blockKey.compare) {
		c := countsOf(a.blocks[key])
		all.blocks[key.run] = append(all.blocks[key.run], c)
		all.runs[key.run].add(&c)
		all.total.add(&c)
	}
	if len(a.blocks) > maxAnalyzed {
		for i, blocks := range all.blocks {
			all.blocks[i] = pairs(blocks)
		}
	}
	for _, g := range a.replicas {
		all.replicas = append(all.replicas, countsOf(g))
	}
	return all
}

// pairs joins each two neighbours.
func pairs(blocks []counts) (joined []counts) {
	for i := range blocks {
		if i%2 == 0 {
			joined = append(joined, blocks[i])
		} else {
			joined[i/2].add(&blocks[i])
		}
	}
	return joined
}
