// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// streamsPerSeries is the number of data point streams that are remembered for each series
// of max_series: about 20 per series and producer.
const streamsPerSeries = 100

func maxStreams(config *Config) int { return streamsPerSeries * config.Series.MaxSeries }

func newPoints(config *Config, now time.Time) *metricreader.Reader {
	return metricreader.New(metricreader.Options{
		Dimensions: config.Series.Dimensions, OwnObjectives: len(config.Objectives) > 0, MaxStreams: maxStreams(config),
	}, now)
}

// RecordMetrics adds the data points that a producer of series published to the same series
// and error budgets here. Settings.Points is set.
func (k *Keeper) RecordMetrics(ctx context.Context, metrics pmetric.Metrics) {
	tally := k.points.Read(metrics, k.settings.Now(), k.increase)
	k.telemetry.read(ctx, &tally)
	if tally.Overflow > 0 {
		k.doubts.Raise(overflowMessage, "")
	}
	for reason, message := range pointProblems {
		if tally.Ignored[reason] > 0 {
			k.doubts.Raise(message, "", zap.String("reason", metricreader.ReasonNames[reason]))
		}
	}
}

func (k *Keeper) increase(i *series.Increment) series.Recorded {
	recorded := k.Engine.Increase(i)
	if k.settings.WatchPoint != nil {
		k.settings.WatchPoint(i)
	}
	if i.Part == series.PartVerdicts && len(k.settings.Config.Objectives) > 0 {
		var buffer [512]byte
		key := buffer[:0]
		if !recorded.Overflow {
			key = k.ofOutcome.AppendKeyOf(key, i)
		}
		k.Tracker.Add(key, i.SLO, i.Verdict, i.Requests, i.Arrival)
	}
	return recorded
}

// pointProblems has the message for each reason: what happens, and the remedy.
var pointProblems = map[metricreader.Reason]string{
	metricreader.WrongScale: "histograms arrive with other buckets than those of scale 6, so token_sli ignores them; " +
		"let no processor or SDK lower their scale between the connector or receiver that sends them and token_sli",
	metricreader.WrongType: "metrics arrive with another type than tokenpulse sends, so token_sli ignores them; " +
		"send them to token_sli over OTLP without a conversion, such as one by Prometheus",
	metricreader.OwnObjectives: "this exporter and a producer of its metrics both have `objectives`, so the exporter ignores the gauges of the producer; " +
		"remove `objectives` from one of them: from the exporter if it has only this producer, else from the producer",
	metricreader.Limit: "the exporter remembers 100 * `max_series` streams of data points, and ignores new ones; " +
		"raise `max_series`, or use fewer dimensions at the producers",
}
