// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// sent is what the next consumer has of each series. A flush builds a new sent and leaves the old
// one unchanged, so that a refused flush has no effect. It has at most one entry per series of the
// engine.
type sent map[seriesID]map[stream]sentPoint

// seriesID distinguishes a series from an expired one with the same key, and from one of conventions.
type seriesID struct {
	key      string
	began    time.Time
	standard bool
}

// stream identifies the data points of one metric of a series by the values of their attributes.
type stream struct{ metric, values string }

// sentPoint is what the next consumer has of one stream. The zero value means nothing.
type sentPoint struct {
	start pcommon.Timestamp // of cumulative points
	// For delta points: the sum, or the number of values. An encoded sketch takes a tenth of the
	// memory of a sketch. Of explicit buckets, the sum of the values and the counts.
	total   float64
	sketch  []byte
	sum     float64
	buckets []uint64
}

// labels are the attributes of a data point, and its place in sent.
type labels struct {
	attributes      pcommon.Map
	values          string
	before, sending map[stream]sentPoint
}

// Series implements keeper.Sink.
func (b *batch) Series(key string, began time.Time) labels {
	return b.labels(seriesID{key: key, began: began}, b.dimensions)
}

// Standard implements keeper.Sink. The conventions have an integer for the port.
func (b *batch) Standard(key string, began time.Time) labels {
	l := b.labels(seriesID{key, began, true}, b.standard)
	if port, ok := l.attributes.Get(names.ServerPort); ok {
		if n, err := strconv.ParseInt(port.Str(), 10, 64); err == nil {
			port.SetInt(n)
		}
	}
	return l
}

// NoSeries implements keeper.Sink.
func (*batch) NoSeries() labels { return labels{attributes: pcommon.NewMap()} }

func (b *batch) labels(id seriesID, dimensions []string) labels {
	of := series.LabelsOf(id.key)
	l := labels{attributes: SeriesAttributes(dimensions, names.LabelVantage, &of)}
	if !id.began.IsZero() {
		l.before, l.sending = b.sent[id], make(map[stream]sentPoint, len(b.sent[id]))
		b.sending[id] = l.sending
	}
	return l
}

// With implements keeper.Sink.
func (*batch) With(l labels, name, value string) labels {
	if value == "" {
		return l
	}
	more := pcommon.NewMap()
	l.attributes.CopyTo(more)
	more.PutStr(name, value)
	l.attributes, l.values = more, l.values+value+"\x00"
	return l
}
