// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// maxGaps limits the gaps that are listed of a request.
const maxGaps = 3

// numbersShown are listed of each request that has them.
var numbersShown = [...]struct {
	title string
	id    numbers.ID
}{
	{"duration", numbers.RequestDuration},
	{"TTFT", numbers.TimeToFirstToken},
	{"TPOT", numbers.TimePerOutputToken},
	{"network", numbers.NetworkDuration},
	{"queue", numbers.QueueDuration},
	{"prefill", numbers.PrefillDuration},
	{"transfer", numbers.TransferDuration},
	{"decode", numbers.DecodeDuration},
}

// together makes a text one that is not broken into lines.
func together(text string) string { return strings.ReplaceAll(text, " ", terminal.NoBreak) }

// details returns lines with what is known of a request.
func details(s *span, r *request.Request) []string {
	lines := []string{
		fmt.Sprintf("%s, span %s: %s", s.label(), s.key.id, strings.Join(labels(r), ", ")),
		"  " + strings.Join(values(r), ", "),
	}
	if gaps := gaps(r); len(gaps) > 0 {
		lines = append(lines, "  longest gaps: "+strings.Join(gaps, "; "))
	}
	return lines
}

func labels(r *request.Request) []string {
	all := []string{series.OutcomeNames[r.Outcome]}
	add := func(title, value string) {
		if value != "" {
			all = append(all, title+terminal.NoBreak+terminal.Printable(value))
		}
	}
	add("error", r.ErrorType)
	add("vantage", r.Vantage)
	add("model", r.Model)
	add("replica", r.Replica)
	add("source", r.Source)
	for _, name := range r.Breaches() {
		add("breaches", name)
	}
	return all
}

func values(r *request.Request) (all []string) {
	for _, shown := range numbersShown {
		if text := r.Seconds(shown.id); text != "-" {
			all = append(all, together(shown.title+" "+text))
		}
	}
	if !math.IsNaN(r.InputTokens) {
		all = append(all, together(request.Count(r.InputTokens)+" input tokens"))
	}
	if !math.IsNaN(r.OutputTokens) {
		all = append(all, together(request.Count(r.OutputTokens)+" output tokens"))
	}
	if r.Stalls > 0 {
		all = append(all, together("stalls "+r.Stalled()))
	}
	if tail := r.OpenTail(); !math.IsNaN(tail) {
		all = append(all, together("no token for the last "+terminal.Duration(tail)))
	}
	return all
}

// gaps describes the longest gaps between the chunks of a request: how many tokens came before, and when.
func gaps(r *request.Request) (all []string) {
	if r.Chunks == nil {
		return nil
	}
	before := make([]uint64, len(r.Chunks.At)+1)
	for i, n := range r.Chunks.Tokens {
		before[i+1] = before[i] + uint64(n)
	}
	for _, i := range r.Chunks.LongestGaps(maxGaps) {
		text := fmt.Sprintf("%s after token %d at %s", terminal.Duration(r.Chunks.Gap(i).Seconds()), before[i], terminal.Duration(r.Chunks.At[i-1].Seconds()))
		if slices.Contains(r.Chunks.Stalled, i) {
			text += " (stall)"
		}
		all = append(all, together(text))
	}
	return all
}

// failed reports whether a request failed.
func failed(r *request.Request) bool {
	return r.Outcome == series.Error || r.Outcome == series.Incomplete
}
