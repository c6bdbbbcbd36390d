// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// engine is the evidence about an engine, and whether it is ready.
type engine struct {
	engines.Evidence

	Ready bool `json:"ready"`
}

// verdictOf returns a verdict that explains its status code, too.
func verdictOf(now time.Duration, s *liveness.Status, known bool) engines.Verdict {
	v := engines.VerdictOf(now, s)
	v.Reason = explain(now, s, known)
	return v
}

func engineWith(now time.Duration, s *liveness.Status) engine {
	e := engine{engines.EvidenceOf(now, s), s.Ready(now)}
	e.Reason = explain(now, s, true)
	return e
}

func explain(now time.Duration, s *liveness.Status, known bool) string {
	switch {
	case !known:
		return "no upstream of this receiver has this name, or max_engines is reached"
	case s.Judged == 0:
		return "this engine is judged within a second"
	}
	reason := engines.Explain(s)
	switch {
	case s.State != liveness.Stuck && s.State != liveness.Down, !s.Ready(now):
		return reason
	case s.Ejected:
		return fmt.Sprintf("%s; but answered 200, because this verdict is %.0f s old: the Collector is overloaded", reason, (now - s.Judged).Seconds())
	default:
		return reason + "; but answered 200, because max_ejected allows no further 503"
	}
}
