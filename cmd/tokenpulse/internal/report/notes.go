// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
)

// Notes says what the numbers leave out, a sentence each without a full stop.
func (r *Report) Notes() []string {
	in := &r.Input
	notes := slices.Clone(in.Notes)
	for _, note := range []struct {
		n    int64
		text string
	}{
		{in.Duplicates, "read before, which count once"},
		{in.Aggregated, "counted by the receiver before it sampled their spans; the metrics of that receiver have them, this report does not"},
		{in.Overflow, "of groups beyond `max_series`, which share one group; use fewer or coarser attributes in --by"},
		{in.Forgotten, "forgotten at the limit `deduplication::max_spans`; raise it if the files may repeat them"},
	} {
		if note.n > 0 {
			notes = append(notes, terminal.Plural(note.n, "request")+" "+note.text)
		}
	}
	if in.Rejected > 0 {
		notes = append(notes, terminal.Plural(in.Rejected, "number")+" of requests left out, because they cannot be true")
	}
	if in.Ignored > 0 {
		notes = append(notes, terminal.Plural(in.Ignored, "span")+" without a latency: no model calls, or of a kind that no reader knows")
	}
	if in.Damaged > 0 {
		notes = append(notes, terminal.Plural(in.Damaged, "damaged message")+" left out")
	}
	for _, attribute := range r.By {
		if len(r.Groups) > 0 && !slices.Contains(r.used(), attribute) {
			notes = append(notes, "no request has the attribute "+terminal.Name(attribute)+", so it is no column")
		}
	}
	return notes
}
