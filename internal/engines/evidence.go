// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// Verdict is the JSON form of the verdict on an engine. Durations are in seconds, and null if not known.
type Verdict struct {
	Engine       string     `json:"engine"`
	State        string     `json:"state"`
	Reason       string     `json:"reason"`
	Since        *time.Time `json:"since"`
	Open         int        `json:"open"`
	Waiting      int        `json:"waiting"`
	LastTokenAge *float64   `json:"last_token_age"`
	Bound        *float64   `json:"bound"`
}

// Evidence is the verdict, and what it was concluded from.
type Evidence struct {
	Verdict

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

// VerdictOf returns the verdict of a status.
func VerdictOf(now time.Duration, s *liveness.Status) Verdict {
	v := Verdict{Engine: s.Engine, State: s.State.String(), Reason: Explain(s)}
	if s.Judged == 0 {
		return v
	}
	since := time.Now().Add(s.Since - now).Round(time.Millisecond)
	v.Since, v.Open, v.Waiting, v.Bound = &since, s.Open(), s.Waiting, known(s.Bound)
	if s.LastToken > 0 {
		v.LastTokenAge = known(now - s.LastToken)
	}
	return v
}

// EvidenceOf returns the verdict of a status with its evidence.
func EvidenceOf(now time.Duration, s *liveness.Status) Evidence {
	return Evidence{
		Verdict:  VerdictOf(now, s),
		Decoding: s.Decoding, Silent: s.Silent, Hung: s.Hung, Untracked: s.Untracked,
		Silence: seconds(s.Silence), LargestPromptBytes: s.Largest, LargestPromptTokens: s.Tokens,
		LearnedFrom: s.Prompts, Learned: s.Learned,
	}
}

func known(d time.Duration) *float64 {
	s := seconds(d)
	return &s
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
