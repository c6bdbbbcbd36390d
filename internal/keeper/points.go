// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
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
	k.doubts.Report(diagnostics.SeriesOverflow, diagnostics.Facts{Cases: tally.Overflow}, "")
	for reason, mistake := range pointMistakes {
		if n := tally.Ignored[reason]; n > 0 {
			k.doubts.Report(mistake, diagnostics.Facts{Cases: n}, "", zap.String("reason", metricreader.ReasonNames[reason]))
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

// pointMistakes has the mistake behind a reason to ignore data points, if it is one.
var pointMistakes = map[metricreader.Reason]diagnostics.Mistake{
	metricreader.WrongScale:    diagnostics.PointsScale,
	metricreader.WrongType:     diagnostics.PointsType,
	metricreader.OwnObjectives: diagnostics.PointsObjectives,
	metricreader.Limit:         diagnostics.PointsLimit,
}
