// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// labels are the attributes of a data point that do not distinguish series.
type labels struct{ outcome, phase, position, kind, slo, verdict, indicator, reason, cause, window string }

// read reads the attributes of a data point: its series go to the increment. It returns
// the ID of its stream, which is a hash of all attributes: streams of one series may differ
// in attributes that are no dimension here.
func (r *Reader) read(name string, attributes pcommon.Map) (id uint64, l labels) {
	i := &r.increment
	copy(i.Dimensions, r.resource)
	i.Vantage, i.Overflow, i.Replica = "", false, r.replica
	r.hash.Reset()
	_, _ = r.hash.WriteString(name)
	id = r.hash.Sum64() + 31*r.id // a resource attribute differs from that of a data point
	for key, v := range attributes.All() {
		id += r.hashOf(key, v)
		switch key {
		case names.LabelVantage:
			i.Vantage = names.CleanLabel(v.Str())
		case names.LabelOverflow:
			i.Overflow = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case names.LabelOutcome:
			l.outcome = v.Str()
		case names.LabelPhase:
			l.phase = v.Str()
		case names.LabelPosition:
			l.position = v.Str()
		case names.LabelType:
			l.kind = v.Str()
		case names.LabelSLO:
			l.slo = names.CleanLabel(v.Str())
		case names.LabelVerdict:
			l.verdict = v.Str()
		case names.LabelIndicator:
			l.indicator = v.Str()
		case names.LabelReason:
			l.reason = v.Str()
		case names.LabelCause:
			l.cause = v.Str()
		case names.LabelWindow:
			l.window = v.Str()
		default:
			r.dimensions.Read(i.Dimensions, key, v)
			if key == names.ServiceInstanceID {
				i.Replica = names.CleanLabel(v.Str())
			}
		}
	}
	return id, l
}

// place sets where the increment adds to its series.
func (r *Reader) place(name string, l *labels) bool {
	i, ok := &r.increment, true
	switch i.Part {
	case series.PartRequests:
		i.Outcome, ok = outcomeOf(l.outcome)
	case series.PartValues:
		i.Outcome, ok = outcomeOf(l.outcome)
		if ok {
			i.Quantity, ok = quantities[quantityKey{name, l.phase, l.position}]
		}
	case series.PartCount:
		i.Count, ok = counts[countKey{name, l.kind, l.indicator, l.reason, l.cause}]
	case series.PartVerdicts:
		i.SLO = l.slo
		i.Verdict, ok = verdicts[l.verdict]
		ok = ok && l.slo != ""
	}
	return ok
}

func outcomeOf(name string) (series.Outcome, bool) {
	i := slices.Index(series.OutcomeNames[:], name)
	return series.Outcome(max(i, 0)), i >= 0
}

type (
	quantityKey struct{ name, phase, position string }
	countKey    struct{ name, kind, indicator, reason, cause string }
)

var (
	quantities = map[quantityKey]numbers.ID{}
	counts     = map[countKey]series.Count{}
	verdicts   = map[string]slo.Verdict{}
)

func init() {
	for _, id := range numbers.Histograms {
		row := id.Row()
		quantities[quantityKey{row.Metric.Name, row.Phase, row.Position}] = id
	}
	for _, c := range series.Counters {
		counts[countKey{c.Name, c.Type, c.Indicator, c.Reason, c.Cause}] = c.Count
	}
	for v := range slo.Verdicts {
		verdicts[v.String()] = v
	}
}

// exemplars reads those with a trace.
func (r *Reader) exemplars(all pmetric.ExemplarSlice) {
	into := r.increment.Exemplars[:0]
	for _, e := range all.All() {
		v := e.DoubleValue()
		if e.ValueType() == pmetric.ExemplarValueTypeInt {
			v = float64(e.IntValue())
		}
		exemplar := series.Exemplar{TraceID: e.TraceID(), SpanID: e.SpanID(), Value: v, UnixNano: int64(e.Timestamp())}
		if exemplar.Set() && v >= 0 && v <= sketch.MaxValue && len(into) < maxExemplars {
			into = append(into, exemplar)
		}
	}
	r.increment.Exemplars = into
}

// maxExemplars limits the exemplars that are read from a data point: package publish sends
// fewer.
const maxExemplars = 64
