// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package diagnostics recognises what costs numbers without an error: mistakes of pipelines, configurations and senders.
// Components report facts, a table has the mistakes, and the log and the live page get what is found. It also counts
// problems with single requests, for self-metrics.
package diagnostics

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tokenpulse/tokenpulse/internal/latency"
)

// Mistake is a row of the table: a mistake of a pipeline, a configuration or a sender that costs numbers without an error.
// Components report facts. The row has all else: from which facts on it is a mistake, what the log and the live page say,
// the remedy and the place in the docs.
type Mistake int

type row struct {
	// key names the mistake. It is an anchor of page, a file in docs.
	key, page string
	seen      threshold
	// says is what is wrong. In the row of a reason, %s are the source and the indicators.
	says, remedy string
	// others is what further doubts are about, if senders choose the names of what the first ones are about.
	others string
	// normal means that some requests have it, so that it is logged as information.
	normal bool
	// again means that the mistake is logged once a minute, else once.
	again bool
	// reason is set if the row is about requests without an indicator. Of two rows, the one with their source counts.
	reason latency.Absence
	source string
}

// threshold is met if all of its limits are.
type threshold struct {
	cases int64         // of the mistake. Zero means one
	share float64       // of all requests, so that 1 means that none was right
	after time.Duration // of running
}

// Facts are what a component saw of a mistake.
type Facts struct {
	// Cases of the mistake, out of All. Rows without a share need no All.
	Cases, All int64
	// Ran is how long the component has run. Rows without a time do not need it.
	Ran time.Duration
}

// SeenIn reports whether the facts show the mistake.
func (m Mistake) SeenIn(f Facts) bool {
	seen := &rows[m].seen
	return f.Cases >= max(seen.cases, 1) && float64(f.Cases) >= seen.share*float64(f.All) && f.Ran >= seen.after
}

// Message says what is wrong, and the remedy.
func (m Mistake) Message() string { return messages[m] }

var messages = func() (all [len(rows)]string) {
	for m := range rows {
		all[m] = rows[m].says + "; " + rows[m].remedy
	}
	return all
}()

// Log logs the mistake, with the place in the docs.
func (m Mistake) Log(logger *zap.Logger, fields ...zap.Field) {
	logger.Log(rows[m].level(), m.Message(), append(fields, zap.String("see", rows[m].link()))...)
}

func (r *row) level() zapcore.Level {
	if r.normal {
		return zapcore.InfoLevel
	}
	return zapcore.WarnLevel
}

// link is the place in the docs.
func (r *row) link() string { return "docs/" + r.page + "#" + r.key }
