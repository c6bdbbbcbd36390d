// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "time"

// Kind is a kind of load.
type Kind int

// The kinds of load. Requests stand beside the others ("requests per second at the SLO"); utilization is of tokens.
const (
	Requests     Kind = iota
	OutputTokens      // of answers
	PromptTokens      // that were not cached
	Kinds
)

// String returns the value of the label kind.
func (k Kind) String() string {
	return [...]string{"requests", "output_tokens", "prompt_tokens"}[k]
}

// Load is a load of each kind, per second.
type Load [Kinds]float64

func (l Load) times(factor float64) Load {
	for k := range l {
		l[k] *= factor
	}
	return l
}

// Slot is the length of a slot. Slots that follow each other are alike: shorter ones would not be independent observations.
const Slot = 15 * time.Second

// offer is what a replica was offered in a slot: the requests that began in it, with those that were refused or failed.
type offer struct {
	// Good and Bad are requests by the verdict of the SLO. It did not judge Others.
	Good, Bad, Others uint64
	// Output and Prompt are the tokens of answers and of prompts that were not cached.
	Output, Prompt uint64
	// Unsized is how many of the requests are not in Output and Prompt, such as refused ones. They count as mean ones.
	Unsized uint64
}

func (s *offer) requests() uint64 { return s.Good + s.Bad + s.Others }
