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
		{in.Duplicates, "were read before, and count once"},
		{in.Aggregated, "were counted by their receiver before it sampled their spans; the metrics of that receiver have them, this report does not"},
		{in.Overflow, "are of groups beyond `max_series`, and share one group; use fewer or coarser attributes in --by"},
		{in.Forgotten, "were forgotten at the limit `deduplication::max_spans`; raise it if the files may repeat them"},
	} {
		if note.n > 0 {
			notes = append(notes, terminal.Plural(note.n, "request")+" "+note.text)
		}
	}
	if in.Rejected > 0 {
		notes = append(notes, terminal.Plural(in.Rejected, "number")+" of requests cannot be true, and were left out")
	}
	if in.Ignored > 0 {
		notes = append(notes, terminal.Plural(in.Ignored, "span")+" have no latency: they are no model calls, or no reader knows them")
	}
	if in.Damaged > 0 {
		notes = append(notes, terminal.Plural(in.Damaged, "damaged message")+" could not be read")
	}
	return notes
}
