// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// lines appends the lines of counters, gauges and histograms whose labels have legacy names, as the encoders of
// Prometheus do. It formats the labels of a sample once, not for each bucket, and allocates nothing: this saves
// half of the CPU time of a rendering as text or OpenMetrics.
type lines struct {
	openMetrics bool
	labels      []byte // of the sample
}

// sample appends the lines of a sample.
func (l *lines) sample(to []byte, name string, m *dto.Metric) []byte {
	l.labels = appendLabels(l.labels[:0], m.Label)
	switch {
	case m.Counter != nil:
		to = l.float(l.begin(to, name, "", nil), m.Counter.GetValue())
		to = l.end(to, m.Counter.Exemplar)
		return l.created(to, strings.TrimSuffix(name, "_total"), m.Counter.CreatedTimestamp)
	case m.Gauge != nil:
		to = l.float(l.begin(to, name, "", nil), m.Gauge.GetValue())
		return l.end(to, nil)
	default:
		return l.histogram(to, name, m.Histogram)
	}
}

var infinity = math.Inf(1)

func (l *lines) histogram(to []byte, name string, h *dto.Histogram) []byte {
	last := 0.0
	for _, b := range h.GetBucket() {
		last = b.GetUpperBound()
		to = l.count(l.begin(to, name, "_bucket", b.UpperBound), b.GetCumulativeCount())
		to = l.end(to, b.Exemplar)
	}
	if last != infinity {
		to = l.count(l.begin(to, name, "_bucket", &infinity), h.GetSampleCount())
		to = l.end(to, nil)
	}
	to = l.float(l.begin(to, name, "_sum", nil), h.GetSampleSum())
	to = l.end(to, nil)
	to = l.count(l.begin(to, name, "_count", nil), h.GetSampleCount())
	to = l.end(to, nil)
	return l.created(to, name, h.GetCreatedTimestamp())
}

// begin appends what stands before a value. bound is the label `le`, unless it is nil.
func (l *lines) begin(to []byte, name, suffix string, bound *float64) []byte {
	to = append(append(to, name...), suffix...)
	switch {
	case bound != nil:
		to = append(append(to, '{'), l.labels...)
		if len(l.labels) > 0 {
			to = append(to, ',')
		}
		to = append(l.float(append(to, `le="`...), *bound), `"}`...)
	case len(l.labels) > 0:
		to = append(append(append(to, '{'), l.labels...), '}')
	}
	return append(to, ' ')
}

// end appends what stands behind a value.
func (l *lines) end(to []byte, e *dto.Exemplar) []byte {
	if l.openMetrics && len(e.GetLabel()) > 0 {
		to = append(appendLabels(append(to, " # {"...), e.Label), "} "...)
		to = l.float(to, e.GetValue())
		if e.Timestamp != nil {
			to = l.time(append(to, ' '), e.Timestamp)
		}
	}
	return append(to, '\n')
}

// created appends the line with the time at which a sample began.
func (l *lines) created(to []byte, name string, at *timestamppb.Timestamp) []byte {
	if !l.openMetrics || at == nil {
		return to
	}
	return append(l.time(l.begin(to, name, "_created", nil), at), '\n')
}

func (l *lines) time(to []byte, at *timestamppb.Timestamp) []byte {
	return l.float(to, float64(at.AsTime().UnixNano())/1e9)
}

// count appends a number of values. In the text format, it is a float.
func (l *lines) count(to []byte, n uint64) []byte {
	if l.openMetrics || n < 1e6 {
		return strconv.AppendUint(to, n, 10)
	}
	return l.float(to, float64(n))
}

func (l *lines) float(to []byte, f float64) []byte {
	from := len(to)
	to = strconv.AppendFloat(to, f, 'g', -1, 64)
	if l.openMetrics && !bytes.ContainsAny(to[from:], "e.NI") {
		to = append(to, ".0"...)
	}
	return to
}

var escaper = strings.NewReplacer("\\", `\\`, "\n", `\n`, "\"", `\"`)

func appendLabels(to []byte, labels []*dto.LabelPair) []byte {
	for i, label := range labels {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(append(to, label.GetName()...), `="`...)
		if value := label.GetValue(); strings.ContainsAny(value, "\\\n\"") {
			to = append(to, escaper.Replace(value)...)
		} else {
			to = append(to, value...)
		}
		to = append(to, '"')
	}
	return to
}
