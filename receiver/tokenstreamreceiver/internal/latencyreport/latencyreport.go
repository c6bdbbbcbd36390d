// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package latencyreport reports on the latencies that the token_stream receiver derives: rejected
// values and clock anomalies as self-metrics, missing latencies as log lines.
package latencyreport

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
)

// Tally is what a batch of streams has to report about the latencies that the receiver
// derived. The zero value is empty.
type Tally struct {
	diagnostics.Tally
	// unmeasured holds, by reason, one of the streams that lack an indicator.
	unmeasured [diagnostics.NumReasons]unmeasuredStream
}

type unmeasuredStream struct {
	found    bool
	resource []byte // as encoded
}

// Explain notes why a stream lacks indicators.
func (t *Tally) Explain(derived *latency.Latency, resource []byte) {
	for i := range derived.Absences {
		if reason := diagnostics.Reason(derived, i); reason != latency.Present && !t.unmeasured[reason].found {
			t.unmeasured[reason] = unmeasuredStream{true, resource}
		}
	}
}

// Reporter reports tallies: counts as self-metrics, and missing latencies as log lines. It is
// safe for concurrent use.
type Reporter struct {
	telemetry *metadata.TelemetryBuilder
	notices   *diagnostics.Notices
	reader    int // of this receiver's spans
}

// New returns a reporter to a component's self-metrics and logger.
func New(telemetry *metadata.TelemetryBuilder, logger *zap.Logger) *Reporter {
	sources := source.Names()
	return &Reporter{telemetry, diagnostics.NewNotices(logger, sources), slices.Index(sources, names.SourceTokenStream)}
}

// Report reports the tally of a batch, whose resources must not have changed, and resets it.
func (r *Reporter) Report(ctx context.Context, batch *Tally) {
	batch.Report(ctx, r.telemetry.ReceiverTokenStreamClockAnomalies, r.telemetry.ReceiverTokenStreamValuesRejected)
	for reason, stream := range batch.unmeasured {
		if stream.found {
			service := func() string { return serviceOf(stream.resource) }
			r.notices.Unmeasured(r.reader, latency.Absence(reason), service, metadata.ScopeName)
		}
	}
	*batch = Tally{}
}

// serviceOf returns the name of the service in an encoded resource.
func serviceOf(resource []byte) string {
	own := pcommon.NewMap()
	senderattributes.Put(own, resource)
	return attributes.Text(own, names.ServiceName)
}
