// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// streamStopped is the reason in place of latency.NotStreamed if the request asked for a stream.
const (
	streamStopped = latency.NumAbsences
	NumReasons    = streamStopped + 1 // number of reasons, latency.Present included
)

// Reason returns the reason why an indicator of a request is missing, as log lines distinguish it.
func Reason(derived *latency.Latency, indicator int) latency.Absence {
	if reason := derived.Absences[indicator]; reason != latency.NotStreamed || !derived.StreamStopped {
		return reason
	}
	return streamStopped
}

// remedies has, for each reason, what to do about it. docs/sources.md explains each. Reasons that
// are normal for some requests are logged as information.
var remedies = [NumReasons]struct {
	level  zapcore.Level
	remedy string
}{
	latency.Implausible:   {zapcore.WarnLevel, "check the unit of the sender's times (milliseconds sent as seconds?) and its clock"},
	latency.NoToken:       {zapcore.InfoLevel, "none needed for failed requests; if requests succeed, report their chunks"},
	latency.NotStreamed:   {zapcore.InfoLevel, "none needed; if the calls do stream, update the instrumentation so that it sets gen_ai.request.stream"},
	streamStopped:         {zapcore.WarnLevel, "the requests ask for a stream: turn on streaming in what stopped it between the service and the observer, such as a gateway or a cache"},
	latency.AmbiguousUnit: {zapcore.WarnLevel, "write gen_ai.response.time_to_first_chunk in seconds, or report the unit of the sender"},
	latency.NotRead:       {zapcore.WarnLevel, "write gen_ai.response.time_to_first_chunk in seconds from the sender's own attribute, for example with the transform processor"},
	latency.NotReported:   {zapcore.WarnLevel, "turn on the sender's setting that reports the first token and the usage, or send token events to token_stream"},
	latency.DroppedEvents: {zapcore.WarnLevel, "raise the SDK's limit of events per span, such as OTEL_SPAN_EVENT_COUNT_LIMIT"},
	latency.Buffered:      {zapcore.WarnLevel, "turn off response buffering in the proxy between the engine and the observer"},
	latency.OneToken:      {zapcore.InfoLevel, "none needed"},
}

// unclaimedMessage is logged for spans that look like model calls.
const unclaimedMessage = "no reader claims a span that looks like a model call, so it has no latency; " +
	"remedy: set gen_ai.operation.name on it; see docs/sources.md#unclaimed"

// noStartRemedy replaces the remedy for latency.NotReported in streams of token_stream, whose senders
// already send token events.
const noStartRemedy = "send a start event for each stream, with the time of the request"

// skippedRemedy replaces the remedy for latency.DroppedEvents in spans of token_tap.
const skippedRemedy = "raise max_event_bytes of token_tap"

// Notices logs why requests have no latency. The logger drops repeated messages. There is one
// message per source and reason, so this needs no state of its own.
type Notices struct {
	logger   *zap.Logger
	messages [][NumReasons]string // by reader
}

// NewNotices returns notices that log each message at most once a minute. sources has the name of each reader.
func NewNotices(logger *zap.Logger, sources []string) *Notices {
	n := &Notices{logger: OnceAMinute(logger), messages: make([][NumReasons]string, len(sources))}
	for reader, name := range sources {
		for reason := latency.Present + 1; reason < NumReasons; reason++ {
			remedy := remedies[reason].remedy
			if name == names.SourceTokenStream && reason == latency.NotReported {
				remedy = noStartRemedy
			}
			if name == names.SourceTokenTap && reason == latency.DroppedEvents {
				remedy = skippedRemedy
			}
			label := reason
			if reason == streamStopped {
				label = latency.NotStreamed
			}
			n.messages[reader][reason] = fmt.Sprintf("requests of source %s have no %s: %s; remedy: %s; see docs/sources.md#%s",
				name, missing(reason), label, remedy, label)
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

// Unmeasured logs the Reason for which a request of a reader has no latency. service returns the
// name of its service; it is called only if the message is logged.
func (n *Notices) Unmeasured(reader int, reason latency.Absence, service func() string, scope string) {
	n.write(remedies[reason].level, n.messages[reader][reason], service, scope)
}

// Unclaimed logs that no reader claims a span that looks like a model call.
func (n *Notices) Unclaimed(service func() string, scope string) {
	n.write(zapcore.WarnLevel, unclaimedMessage, service, scope)
}

func (n *Notices) write(level zapcore.Level, message string, service func() string, scope string) {
	if entry := n.logger.Check(level, message); entry != nil {
		entry.Write(zap.String("service", service()), zap.String("scope", scope))
	}
}
