// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// Values of the attribute cause of dropped spans.
const (
	causeQueueFull      = "queue_full"
	causeRefused        = "refused"
	causePermanentError = "permanent_error"
	causeShutdown       = "shutdown"
)

// delivery hands spans to the pipeline, apart from the goroutines that forward. If the
// pipeline is slow or refuses, spans are dropped, because traffic must not wait.
type delivery struct {
	queue     chan ptrace.Span
	crowd     int           // spans in the queue that do not wait for more
	crowded   chan struct{} // says that there are so many; closed when no more come
	service   string        // of spans without one
	next      consumer.Traces
	report    *receiverhelper.ObsReport
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger

	context context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
}

func newDelivery(cfg *Config, set receiver.Settings, telemetry *metadata.TelemetryBuilder, next consumer.Traces) (*delivery, error) {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "http", ReceiverCreateSettings: set})
	if err != nil {
		return nil, err
	}
	d := &delivery{
		queue: make(chan ptrace.Span, cfg.MaxQueuedSpans), crowd: min(maxBatch, cfg.MaxQueuedSpans/2), crowded: make(chan struct{}, 1),
		service: cfg.ServiceName, next: next, report: report, telemetry: telemetry, logger: diagnostics.OnceAMinute(set.Logger),
	}
	d.context, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

func (d *delivery) start() { d.running.Go(d.run) }

// send queues a span, or drops it if the queue is full. It does not block.
func (d *delivery) send(span ptrace.Span) {
	select {
	case d.queue <- span:
	default:
		d.drop(1, causeQueueFull)
	}
	if len(d.queue) >= d.crowd {
		select {
		case d.crowded <- struct{}{}:
		default:
		}
	}
}

// stopTimeout limits the wait for the pipeline at shutdown. The Collector has no such limit.
const stopTimeout = 5 * time.Second

// stop sends the queued spans. When ctx ends, it drops those that are still queued. send must
// not be called after it.
func (d *delivery) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	d.closing.Do(func() {
		close(d.crowded)
		close(d.queue)
	})
	stop := context.AfterFunc(ctx, d.cancel)
	d.running.Wait()
	stop()
	d.cancel()
}

// maxBatch limits the spans that are handed over at a time.
const maxBatch = 512

// linger is how long a span waits for others. Each batch wakes goroutines, which delays what is being
// forwarded and costs more than the span.
const linger = 100 * time.Millisecond

func (d *delivery) run() {
	for span := range d.queue {
		if len(d.queue) < d.crowd {
			select {
			case <-time.After(linger):
			case <-d.crowded:
			}
		}
		traces, services := ptrace.NewTraces(), map[string]ptrace.SpanSlice{}
		d.add(traces, services, span)
		for n := 1; len(d.queue) > 0 && n < maxBatch; n++ {
			d.add(traces, services, <-d.queue)
		}
		d.deliver(traces)
	}
}

// serviceOf returns the service that a header names, else the one of the setting.
func serviceOf(own pcommon.Map, setting string) string {
	if named := attributes.Text(own, names.ServiceName); named != "" {
		return named
	}
	return setting
}

// add moves a span to the resource of its service, which is made for the first one.
func (d *delivery) add(traces ptrace.Traces, services map[string]ptrace.SpanSlice, span ptrace.Span) {
	service := serviceOf(span.Attributes(), d.service)
	span.Attributes().Remove(names.ServiceName)
	spans, known := services[service]
	if !known {
		resource := traces.ResourceSpans().AppendEmpty()
		resource.Resource().Attributes().PutStr(names.ServiceName, service)
		scope := resource.ScopeSpans().AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		spans = scope.Spans()
		services[service] = spans
	}
	span.MoveTo(spans.AppendEmpty())
}

func (d *delivery) deliver(traces ptrace.Traces) {
	spans := traces.SpanCount()
	if d.context.Err() != nil {
		d.drop(spans, causeShutdown)
		return
	}
	ctx := d.report.StartTracesOp(d.context)
	err := d.next.ConsumeTraces(ctx, traces)
	d.report.EndTracesOp(ctx, "llm", spans, err)
	switch {
	case err == nil:
		return
	case consumererror.IsPermanent(err):
		d.drop(spans, causePermanentError)
	default:
		d.drop(spans, causeRefused)
	}
	d.logger.Warn("dropped spans that the pipeline did not accept; check its exporters", zap.Error(err))
}

func (d *delivery) drop(spans int, cause string) {
	d.telemetry.ReceiverTokenTapSpansDropped.Add(context.Background(), int64(spans), diagnostics.Label("cause", cause))
}
