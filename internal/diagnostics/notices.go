// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// streamStopped is the reason in place of latency.NotStreamed if the request asked for a stream.
const (
	streamStopped = latency.NumAbsences
	NumReasons    = streamStopped + 1 // number of reasons, latency.Present included
)

// Reason returns the reason why a latency of a request is missing, as log lines distinguish it. Log lines do not say that
// the tokens of its chunks are.
func Reason(derived *latency.Latency, indicator int) latency.Absence {
	if numbers.Indicators[indicator] == numbers.TokensPerChunk {
		return latency.Present
	}
	if reason := derived.Absences[indicator]; reason != latency.NotStreamed || !derived.StreamStopped {
		return reason
	}
	return streamStopped
}

// Notices logs why requests have no latency. The logger drops repeated messages. There is one
// message per source and reason, so this needs no state of its own.
type Notices struct {
	logger  *zap.Logger
	reasons [][NumReasons]notice // by reader
}

type notice struct {
	level   zapcore.Level
	message string
}

var unclaimed = rows[SpanUnclaimed].notice("", 0)

// NewNotices returns notices that log each message at most once a minute. sources has the name of each reader.
func NewNotices(logger *zap.Logger, sources []string) *Notices {
	n := &Notices{logger: OnceAMinute(logger), reasons: make([][NumReasons]notice, len(sources))}
	for reader, name := range sources {
		for reason := latency.Present + 1; reason < NumReasons; reason++ {
			n.reasons[reader][reason] = rowOf(reason, name).notice(name, reason)
		}
	}
	return n
}

// rowOf returns the row of a reason and a source, or else of the reason alone.
func rowOf(reason latency.Absence, source string) (found *row) {
	for m := range rows {
		if r := &rows[m]; r.reason == reason && (r.source == source || r.source == "" && found == nil) {
			found = r
		}
	}
	return found
}

// notice returns what is logged of requests, which names its place in the docs.
func (r *row) notice(source string, reason latency.Absence) notice {
	says := r.says
	if r.reason != latency.Present {
		says = fmt.Sprintf(says, source, missing(reason)) + ": " + r.key
	}
	return notice{r.level(), says + "; remedy: " + r.remedy + "; see " + r.link()}
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
	n.write(&n.reasons[reader][reason], service, scope)
}

// Unclaimed logs that no reader claims a span that looks like a model call.
func (n *Notices) Unclaimed(service func() string, scope string) {
	n.write(&unclaimed, service, scope)
}

func (n *Notices) write(what *notice, service func() string, scope string) {
	if entry := n.logger.Check(what.level, what.message); entry != nil {
		entry.Write(zap.String("service", service()), zap.String("scope", scope))
	}
}
