// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"fmt"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
)

// maxOutside limits the notes on spans outside their parents.
const maxOutside = 5

// notes says what the picture does not show as it is.
func (t *Trace) notes() (all []string) {
	if t.Partial {
		all = append(all, "PART of the files: reading was interrupted")
	}
	if t.Left > 0 {
		all = append(all, fmt.Sprintf("%s of this trace left out, beyond %d spans or %d MiB", terminal.Plural(int(t.Left), "more span"), maxSpans, maxBytes>>20))
	}
	lost, outside := 0, 0
	for _, s := range t.spans {
		if s.parent == nil && !s.parentID.IsEmpty() {
			lost++
		}
		note := s.outside()
		if note == "" {
			continue
		}
		if outside++; outside <= maxOutside {
			all = append(all, note)
		}
	}
	if outside > maxOutside {
		all = append(all, terminal.Plural(outside-maxOutside, "more span")+" outside their parents")
	}
	if lost > 0 {
		all = append(all, terminal.Plural(lost, "span")+" without their parents, which the files do not have")
	}
	return all
}

// outside describes a span that is not within its parent.
func (s *span) outside() string {
	if s.parent == nil || !s.timed || !s.parent.timed {
		return ""
	}
	name := fmt.Sprintf("%s (span %s)", s.label(), s.key.id)
	if early := s.parent.begin - s.begin; early > 0 {
		return fmt.Sprintf("%s starts %s before its parent: their clocks differ", name, terminal.Duration(early.Seconds()))
	}
	if late := s.end - s.parent.end; late > 0 {
		return fmt.Sprintf("%s ends %s after its parent: their clocks differ, or the parent did not wait", name, terminal.Duration(late.Seconds()))
	}
	return ""
}
