// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// remedies has, for each reason, what to do about it. docs/sources.md explains each. Reasons that
// are normal for some requests are logged as information.
var remedies = [latency.NumAbsences]struct {
	level  zapcore.Level
	remedy string
}{
	latency.Implausible:   {zapcore.WarnLevel, "check the unit of the sender's times (milliseconds sent as seconds?) and its clock"},
	latency.NoToken:       {zapcore.InfoLevel, "none needed for failed requests; if requests succeed, report their chunks"},
	latency.NotStreamed:   {zapcore.InfoLevel, "none needed; if the calls do stream, update the instrumentation so that it sets gen_ai.request.stream"},
	latency.NotReported:   {zapcore.WarnLevel, "turn on the sender's setting that reports the first token and the usage, or send token events to token_stream"},
	latency.DroppedEvents: {zapcore.WarnLevel, "raise the SDK's limit of events per span, such as OTEL_SPAN_EVENT_COUNT_LIMIT"},
	latency.Buffered:      {zapcore.WarnLevel, "turn off response buffering in the proxy between the engine and the observer"},
	latency.OneToken:      {zapcore.InfoLevel, "none needed"},
}

// unclaimedMessage is logged for spans that look like model calls.
const unclaimedMessage = "no reader claims a span that looks like a model call, so it has no latency; " +
	"remedy: set gen_ai.operation.name on it; see docs/sources.md#unclaimed"

// notices logs why requests have no latency. The logger drops repeated messages. There is one
// message per source and reason, so this needs no state of its own.
type notices struct {
	logger   *zap.Logger
	messages [][latency.NumAbsences]string // by reader
}

func newNotices(logger *zap.Logger, sources []string) *notices {
	n := &notices{logger: logger, messages: make([][latency.NumAbsences]string, len(sources))}
	for reader, source := range sources {
		for reason := latency.Present + 1; reason < latency.NumAbsences; reason++ {
			n.messages[reader][reason] = fmt.Sprintf("requests of source %s have no %s: %s; remedy: %s; see docs/sources.md#%s",
				source, missing(reason), reason, remedies[reason].remedy, reason)
		}
	}
	return n
}

// missing names the indicators that can be missing for a reason.
func missing(reason latency.Absence) string {
	if reason == latency.Buffered || reason == latency.OneToken {
		return names.UnmeasuredIndicators[1]
	}
	return names.UnmeasuredIndicators[0] + " or " + names.UnmeasuredIndicators[1]
}

// log logs the reasons of the worker's last span.
func (n *notices) log(resource pcommon.Map, scope string, w *worker) {
	if w.observed == nil {
		if w.observer.Unclaimed() {
			n.write(zapcore.WarnLevel, unclaimedMessage, resource, scope)
		}
		return
	}
	for _, reason := range w.derived.Absences {
		if reason != latency.Present {
			n.write(remedies[reason].level, n.messages[w.observed.Reader][reason], resource, scope)
		}
	}
}

func (n *notices) write(level zapcore.Level, message string, resource pcommon.Map, scope string) {
	if entry := n.logger.Check(level, message); entry != nil {
		entry.Write(zap.String("service", annotate.Text(resource, names.ServiceName)), zap.String("scope", scope))
	}
}
