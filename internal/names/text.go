// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

import "strings"

// HoldText reports whether attributes of a name may hold text of prompts or answers: the
// name has a word for text.
func HoldText(name string) bool {
	for word := range strings.SplitSeq(name, ".") {
		switch word {
		case "text", "content", "delta", "message", "messages", "prompt", "prompts", "input", "output", "completion",
			"completions", "instructions", "system_instructions":
			return true
		}
	}
	return false
}
