// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package openstreams counts the open streams of receivers by series, for a gauge.
package openstreams

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Counter counts open streams by series. It is safe for concurrent use.
type Counter struct {
	config *series.Config
	labels spanreader.Dimensions
	// receivers returns those whose streams count.
	receivers func() []inprocess.VisitOpenStreams

	mu sync.Mutex
	// mu guards everything declared below.
	series map[string]*counts
	stream series.Labels // to build keys
	key    []byte
}

// counts are those of the streams of one series.
type counts [len(inprocess.OpenStreamPhases)][len(inprocess.OpenStreamBands)]struct {
	streams int
	// lastSeen is when there last was a stream, zero if there never was one.
	lastSeen time.Time
}

// Sample is the number of streams in one phase and band of a series.
type Sample struct {
	// Key is that of the series, as series.Labels.AppendKey writes it.
	Key string
	// Phase and Silent are values of inprocess.OpenStreamPhases and inprocess.OpenStreamBands.
	Phase, Silent string
	Streams       int
}

// overflowKey is the key of the series of all streams beyond MaxSeries, as in package series.
const overflowKey = ""

// New returns a counter of the streams of receivers, with a limit of series of its own.
func New(config *series.Config, receivers func() []inprocess.VisitOpenStreams) *Counter {
	return &Counter{config: config, labels: spanreader.NewDimensions(config.Dimensions), receivers: receivers, series: map[string]*counts{}}
}

// Collect calls visit with each number of streams that is not 0, and with those that became 0 within
// SeriesExpiration, in the order of the keys. overflow is set if the limit of series was reached.
func (c *Counter) Collect(now time.Time, visit func(*Sample)) (overflow bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	for _, receiver := range c.receivers() {
		receiver(&c.labels, func(s *inprocess.OpenStream) {
			of := c.find(s)
			phase, band := s.Cell()
			of[phase][band].streams++
			of[phase][band].lastSeen = now
		})
	}
	for _, key := range slices.Sorted(maps.Keys(c.series)) {
		c.series[key].each(func(phase, band int) {
			visit(&Sample{key, inprocess.OpenStreamPhases[phase], inprocess.OpenStreamBands[band], c.series[key][phase][band].streams})
		})
	}
	return c.series[overflowKey] != nil
}

// expire removes the counts of the last call, and the series that have been empty for the configured time.
func (c *Counter) expire(now time.Time) {
	for key, of := range c.series {
		held := false
		of.each(func(phase, band int) {
			cell := &of[phase][band]
			cell.streams = 0
			if c.config.SeriesExpiration > 0 && now.Sub(cell.lastSeen) > c.config.SeriesExpiration {
				cell.lastSeen = time.Time{}
			}
			held = held || !cell.lastSeen.IsZero()
		})
		if !held {
			delete(c.series, key)
		}
	}
}

// find returns the counts of the series of a stream, or those of the overflow series at the limit.
func (c *Counter) find(s *inprocess.OpenStream) *counts {
	c.stream.Dimensions, c.stream.Vantage = s.Dimensions, s.Vantage
	c.key = c.stream.AppendKey(c.key[:0])
	of := c.series[string(c.key)]
	if of != nil {
		return of
	}
	key := string(c.key)
	held := len(c.series)
	if c.series[overflowKey] != nil {
		held--
	}
	if held >= c.config.MaxSeries {
		key = overflowKey
	}
	if of = c.series[key]; of == nil {
		of = new(counts)
		c.series[key] = of
	}
	return of
}

// each calls visit with each cell that had a stream within the configured time.
func (of *counts) each(visit func(phase, band int)) {
	for phase := range of {
		for band := range of[phase] {
			if !of[phase][band].lastSeen.IsZero() {
				visit(phase, band)
			}
		}
	}
}
