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

// An SLO that applied to no request after both of these limits most likely has a mistake.
const (
	unappliedAfter         = 15 * time.Minute
	unappliedAfterRequests = 100
)

// NewUnapplied returns a check of the rules, which counts time from now.
func NewUnapplied(doubts *diagnostics.Doubts, rules *Rules) *Unapplied {
	return &Unapplied{doubts: doubts, rules: rules, since: time.Now()}
}

// Inspect is called after each batch.
func (u *Unapplied) Inspect() {
	if time.Since(u.since) < unappliedAfter {
		return
	}
	var slos []string
	for i := range u.rules.all {
		if use := u.rules.all[i].use; !use.Met() && use.Count() >= unappliedAfterRequests {
			slos = append(slos, u.rules.all[i].name)
		}
	}
	if slos != nil {
		u.doubts.Raise("no request matched these SLOs, so they have no verdicts; compare their `match`, `match_regexp` and `match_range` "+
			"with the attributes of the spans and resources", strings.Join(slos, ", "), zap.Strings("slos", slos))
	}
}
