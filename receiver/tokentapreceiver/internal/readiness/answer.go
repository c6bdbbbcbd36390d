// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// verdict is the answer about one engine. Times are in seconds, and null if not known.
type verdict struct {
	Engine       string     `json:"engine"`
	State        string     `json:"state"`
	Reason       string     `json:"reason"`
	Since        *time.Time `json:"since"`
	Open         int        `json:"open"`
	Waiting      int        `json:"waiting"`
	LastTokenAge *float64   `json:"last_token_age"`
	Bound        *float64   `json:"bound"`
}

// engine is the verdict with its evidence.
type engine struct {
	verdict

	Ready     bool    `json:"ready"`
	Decoding  int     `json:"decoding"`
	Silent    int     `json:"silent"`
	Hung      int     `json:"hung"`
	Untracked int     `json:"untracked"`
	Silence   float64 `json:"silence"`
	// Of the largest open prompt.
	LargestPromptBytes  int64  `json:"largest_prompt_bytes"`
	LargestPromptTokens int64  `json:"largest_prompt_tokens"` // an estimate, 0 without one
	LearnedFrom         uint64 `json:"learned_from"`          // prompts
	Learned             bool   `json:"learned"`
}

func verdictOf(now time.Duration, s *liveness.Status, known bool) verdict {
	v := verdict{Engine: s.Engine, State: s.State.String(), Reason: explain(now, s, known)}
	if s.Judged == 0 {
		return v
	}
	since := time.Now().Add(s.Since - now).Round(time.Millisecond)
	v.Since, v.Open, v.Waiting, v.Bound = &since, s.Open(), s.Waiting, seconds(s.Bound)
	if s.LastToken > 0 {
		v.LastTokenAge = seconds(now - s.LastToken)
	}
	return v
}

func engineWith(now time.Duration, s *liveness.Status) engine {
	return engine{
		verdict: verdictOf(now, s, true), Ready: s.Ready(now),
		Decoding: s.Decoding, Silent: s.Silent, Hung: s.Hung, Untracked: s.Untracked,
		Silence: *seconds(s.Silence), LargestPromptBytes: s.Largest, LargestPromptTokens: s.Tokens,
		LearnedFrom: s.Prompts, Learned: s.Learned,
	}
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

func seconds(d time.Duration) *float64 {
	s := math.Round(d.Seconds()*1000) / 1000
	return &s
}
