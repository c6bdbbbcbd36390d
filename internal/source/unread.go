// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// timingWords are parts of the names under which senders report when tokens arrived.
var timingWords = [...]string{"ttft", "ttfb", "first_token", "firsttoken", "first_chunk", "firstchunk", "first_byte", "tpot", "per_output_token", "inter_token"}

// hasUnreadTiming reports whether the span has a number or an event whose name is that of a timing of tokens. It is asked for calls
// without a time of the first token: their sender reports one under a name that no reader reads.
func hasUnreadTiming(r *reader, c candidate) bool {
	for key, v := range c.span.Attributes().All() {
		if strings.HasPrefix(key, names.Prefix) || strings.HasPrefix(key, "llm_d.") { // llm-d has no time of a token
			continue
		}
		if _, ok := attributes.Number(v); !ok {
			continue
		}
		if namesTiming(key) {
			return true
		}
	}
	if r.event != nil { // reads such an event, or ignores it for a reason
		return false
	}
	for _, event := range c.span.Events().All() {
		if _, known := eventKinds[event.Name()]; !known && namesTiming(event.Name()) {
			return true
		}
	}
	return false
}

func namesTiming(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(timingWords[:], func(word string) bool { return strings.Contains(name, word) })
}
