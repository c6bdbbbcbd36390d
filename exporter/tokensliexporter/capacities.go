// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// CapacityConfig asks for the load at which replicas meet an objective.
type CapacityConfig struct {
	// SLO is a name from `slos` of token_latency, or `all`.
	SLO string `mapstructure:"slo"`
	// Objective is the share of good requests, such as 0.95.
	Objective float64 `mapstructure:"objective"`
	// Forget is how long a limit stays after the objective was last missed at a higher load.
	Forget time.Duration `mapstructure:"forget"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Limits of `capacity`.
const (
	minForget       = time.Hour
	maxForget       = 90 * 24 * time.Hour
	defaultForget   = 7 * 24 * time.Hour
	minimumCapacity = 0.5
	maximumCapacity = 0.999
)

// Unmarshal sets the defaults of a list entry, which a default configuration cannot hold.
func (c *CapacityConfig) Unmarshal(conf *confmap.Conf) error {
	c.Forget = defaultForget
	return conf.Unmarshal(c)
}

func capacityProblems(all []CapacityConfig) (errs settings.Problems) {
	errs.Unless(len(all) <= capacity.MaxObjectives, "`capacity` has %d entries; the maximum is %d", len(all), capacity.MaxObjectives)
	used := keeper.SLONames{}
	for i := range all {
		c := &all[i]
		if err := used.Add("capacity", i, c.SLO, "`capacity::%d::slo` is, too"); err != nil {
			errs = append(errs, err)
		}
		errs.Unless(minimumCapacity <= c.Objective && c.Objective <= maximumCapacity,
			"`capacity::%d::objective` is %v; use the share of good requests, from %v to %v, such as 0.95", i, c.Objective, minimumCapacity, maximumCapacity)
		errs.Unless(minForget <= c.Forget && c.Forget <= maxForget, "`capacity::%d::forget` is %v; use 1h to 2160h, such as 168h for 7 days", i, c.Forget)
	}
	return errs
}

// capacities learns the limits of replicas. A nil one learns nothing.
type capacities struct {
	*capacity.Table

	positions  map[string]int // of objectives, by SLO
	dimensions series.Dimensions
	ofOutcome  series.OutcomeDimensions
	saved      *storageclient.Snapshots[capacity.Key, capacity.Version] // set by start
}

// newCapacities returns nil without `capacity`.
func newCapacities(config *Config) *capacities {
	if len(config.Capacity) == 0 {
		return nil
	}
	dimensions := config.Shared.Series.Dimensions
	c := &capacities{positions: map[string]int{}, dimensions: dimensions, ofOutcome: dimensions.OfOutcome()}
	var objectives []capacity.Objective
	for i := range config.Capacity {
		of := &config.Capacity[i]
		name := names.CleanLabel(of.SLO)
		c.positions[name] = i
		objectives = append(objectives, capacity.Objective{SLO: name, Objective: of.Objective, Forget: of.Forget})
	}
	c.Table = capacity.NewTable(objectives)
	return c
}

// start restores what was learned.
func (c *capacities) start(ctx context.Context, host component.Host, id component.ID, config *Config, logger *zap.Logger) (err error) {
	if c == nil {
		return nil
	}
	owner := storageclient.Owner{Kind: component.KindExporter, ID: id, Name: "capacities"}
	values := storageclient.Values[capacity.Key, capacity.Version]{
		Name: "capacities", Keys: "limits", Dimensions: c.dimensions.Identities(),
		Entry:      entryOfCapacity,
		Saved:      c.Table.Save,
		Restore:    func(k capacity.Key, encoded []byte) error { return c.Restore(k, encoded, time.Now()) },
		Unreadable: "cannot restore some limits of `capacity`, which are learned anew",
	}
	c.saved, _, err = storageclient.OpenSnapshots(ctx, host, config.Shared.StorageID, owner, values, logger)
	return err
}

// entryOfCapacity returns the storage key of a limit.
func entryOfCapacity(k capacity.Key) string {
	return storageclient.Entry("limit", []byte(k.SLO+"\x00"+k.Series))
}

// Save implements keeper.Saver.
func (c *capacities) Save(ctx context.Context) error { return c.saved.Save(ctx, nil) }

// Close implements keeper.Saver.
func (c *capacities) Close(ctx context.Context) error { return c.saved.Close(ctx, nil) }

// watch counts a request, unless it is in a series of which data points arrive.
func (c *capacities) watch(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	if c == nil || r.TraceOnly || keeper.IsAggregated(span) {
		return
	}
	label := func(name string) string { return attributes.Label(name, span.Attributes(), resource) }
	var key [512]byte
	of := capacity.Request{
		Vantage: r.Vantage, Replica: attributes.Replica(r.Vantage, label),
		Start: span.StartTimestamp().AsTime(), End: span.EndTimestamp().AsTime(),
	}
	if size, ok := r.Size(); ok {
		of.Output, of.Prompt, of.Sized = size.Output, size.Computed(), true
	}
	for name, verdict := range r.Verdicts.All {
		if i, ok := c.positions[name]; ok {
			of.Verdicts[i] = verdictsOfCapacity[verdict]
		}
	}
	c.Record(c.ofOutcome.AppendKey(key[:0], r.Dimensions, r.Vantage), &of, r.Arrival)
}

var verdictsOfCapacity = [slo.Verdicts]capacity.Verdict{slo.Good: capacity.Good, slo.Bad: capacity.Bad}

// Metrics of `capacity`.
var (
	capacityLoad = numbers.Metric{
		Name:        names.CapacityLoad,
		Description: "Load that replicas are offered now, in total, per second: requests that began in the last minute, refused and failed ones included, and their tokens.",
	}
	capacityLimit = numbers.Metric{
		Name:        names.CapacityLimit,
		Description: "Load at which the objective of an SLO was met, as a lower bound, for all replicas of `load` together.",
	}
	capacityUtilization = numbers.Metric{
		Name:        names.CapacityUtilization,
		Description: "Quotient of load and limit, the larger one of output tokens and prompt tokens.",
	}
)

// collect writes the limits that are known.
func (c *capacities) collect(s *scrape, now time.Time) {
	if c == nil {
		return
	}
	c.Visit(now, func(of *capacity.State) {
		if !of.Known() {
			return
		}
		labels := s.With(s.labels(of.Series, s.dimensions), names.LabelSLO, of.SLO)
		total := of.TotalLimit()
		for k := range capacity.Kinds {
			kind := s.With(labels, names.LabelKind, k.String())
			s.Gauge(kind, &capacityLoad, of.Load[k])
			s.Gauge(kind, &capacityLimit, total[k])
		}
		s.Gauge(labels, &capacityUtilization, of.TotalUtilization())
	})
}
