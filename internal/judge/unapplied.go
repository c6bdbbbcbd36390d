// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

// Unapplied recognises SLOs that apply to no request.
type Unapplied struct {
	doubts *diagnostics.Doubts
	rules  *Rules
	since  time.Time
}

// NewUnapplied returns a check of the rules, which counts time from now.
func NewUnapplied(doubts *diagnostics.Doubts, rules *Rules) *Unapplied {
	return &Unapplied{doubts: doubts, rules: rules, since: time.Now()}
}

// Inspect is called after each batch.
func (u *Unapplied) Inspect() {
	ran := time.Since(u.since)
	var seen diagnostics.Facts
	var slos []string
	for i := range u.rules.all {
		facts := u.rules.all[i].use.Facts()
		if facts.Ran = ran; diagnostics.SLOUnapplied.SeenIn(facts) {
			seen, slos = facts, append(slos, u.rules.all[i].name)
		}
	}
	if slos != nil {
		u.doubts.Report(diagnostics.SLOUnapplied, seen, strings.Join(slos, ", "), zap.Strings("slos", slos))
	}
}
