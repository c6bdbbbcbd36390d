// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"cmp"
	"context"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// comparisons compare pairs of values of a dimension.
type comparisons struct {
	*compare.Store
	configured []compare.Question
	saved      *compare.Saved // set by start
}

func newComparisons(config *Config) *comparisons {
	configured := config.questions()
	return &comparisons{Store: compare.New(config.Shared.Series.Dimensions.Names(), configured), configured: configured}
}

// start restores the evidence.
func (c *comparisons) start(ctx context.Context, host component.Host, id component.ID, config *Config, logger *zap.Logger) (err error) {
	owner := storageclient.Owner{Kind: component.KindExporter, ID: id, Name: "comparisons"}
	c.saved, _, err = storageclient.OpenSnapshots(ctx, host, config.Shared.StorageID, owner, c.Values(), logger)
	return err
}

// Save implements keeper.Saver.
func (c *comparisons) Save(ctx context.Context) error {
	c.EndIdle(time.Now())
	return c.saved.Save(ctx, nil)
}

// Close implements keeper.Saver.
func (c *comparisons) Close(ctx context.Context) error { return c.saved.Close(ctx, nil) }

// watch counts a request, unless it is in a series of which data points arrive.
func (c *comparisons) watch(r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	if !c.Used() || keeper.IsAggregated(span) {
		return
	}
	c.Record(&compare.Request{Contribution: r, Start: span.StartTimestamp().AsTime(), Replica: func() string { return replicaOf(r.Vantage, span, resource) }})
}

// replicaOf returns the replica whose requests depend on each other, or "". A client that does not know the server's
// address may still be one of several that run the same version.
func replicaOf(vantage string, span ptrace.Span, resource pcommon.Map) string {
	value := func(name string) string { return attributes.Label(name, span.Attributes(), resource) }
	return cmp.Or(attributes.Replica(vantage, value), value(names.ServiceInstanceID))
}

var compareVerdict = numbers.Metric{
	Name:        names.CompareVerdict,
	Description: "Verdict on a pair of `compare`: 1 for the verdict that holds, 0 for the others.",
}

// collect writes the verdicts on the configured pairs.
func (c *comparisons) collect(s *scrape, now time.Time) {
	for i := range c.configured {
		q := &c.configured[i]
		reply, err := c.Ask(q, now)
		if err != nil { // configured pairs are always there
			continue
		}
		var labels []*dto.LabelPair
		for name, value := range map[string]string{
			names.LabelDimension: q.Dimension, names.LabelBaseline: q.Baseline, names.LabelCandidate: q.Candidate,
			names.LabelVantage: q.Vantage, names.LabelSLO: q.SLO, names.LabelIndicator: q.Indicator,
		} {
			labels = s.With(labels, name, value)
		}
		if q.Percentile > 0 {
			labels = s.With(labels, names.LabelPercentile, strconv.FormatFloat(q.Percentile, 'f', -1, 64))
		}
		for _, verdict := range []canary.Verdict{canary.Pass, canary.Fail, canary.Undecided} {
			value := 0.0
			if verdict == reply.Verdict {
				value = 1
			}
			s.Gauge(s.With(labels, names.LabelVerdict, string(verdict)), &compareVerdict, value)
		}
	}
}
