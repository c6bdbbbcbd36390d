// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// latencyTally is what a batch of streams has to report about the latencies that the receiver
// derived. The zero value is empty.
type latencyTally struct {
	annotate.Tally
	// unmeasured holds, by reason, one of the streams that lack an indicator.
	unmeasured [latency.NumAbsences]unmeasuredStream
}

type unmeasuredStream struct {
	found    bool
	resource []byte // as encoded
}

// explain notes why a stream lacks indicators.
func (t *latencyTally) explain(derived *latency.Latency, resource []byte) {
	for _, reason := range derived.Absences {
		if reason != latency.Present && !t.unmeasured[reason].found {
			t.unmeasured[reason] = unmeasuredStream{true, resource}
		}
	}
}

// latencyReporter reports tallies: counts as self-metrics, and missing latencies as log lines. It is
// safe for concurrent use.
type latencyReporter struct {
	telemetry *metadata.TelemetryBuilder
	notices   *annotate.Notices
	reader    int // of this receiver's spans
}

func newLatencyReporter(telemetry *metadata.TelemetryBuilder, logger *zap.Logger) *latencyReporter {
	return &latencyReporter{telemetry, annotate.NewNotices(logger), slices.Index(source.Names(), names.SourceTokenStream)}
}

// report reports the tally of a batch, whose resources must not have changed, and resets it.
func (r *latencyReporter) report(ctx context.Context, batch *latencyTally) {
	batch.Report(ctx, r.telemetry.ReceiverTokenStreamClockAnomalies, r.telemetry.ReceiverTokenStreamValuesRejected)
	for reason, stream := range batch.unmeasured {
		if stream.found {
			service := func() string { return serviceOf(stream.resource) }
			r.notices.Unmeasured(r.reader, latency.Absence(reason), service, metadata.ScopeName)
		}
	}
	*batch = latencyTally{}
}

// serviceOf returns the name of the service in an encoded resource.
func serviceOf(resource []byte) string {
	attributes := pcommon.NewMap()
	putSenderAttributes(attributes, resource)
	return annotate.Text(attributes, names.ServiceName)
}
