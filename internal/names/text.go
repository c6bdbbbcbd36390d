// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"slices"
	"strings"
)

// Other replaces a category that may be free text.
const Other = "_OTHER"

// maxCategory is the length of the longest category in bytes.
const maxCategory = 64

// Category returns a value of ErrorType or GenAIFinishReasons that may become a label: letters, digits
// and _.:/- as they are, and Other for anything else, which may be text of a prompt or an answer.
func Category(text string) string {
	if len(text) > maxCategory {
		return Other
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == ':', c == '/', c == '-':
		default:
			return Other
		}
	}
	return text
}

// IsCategory reports whether the values of an attribute are categories: ErrorType and any name of
// GenAIFinishReasons.
func IsCategory(name string) bool {
	return name == ErrorType || slices.Contains(Aliases[FinishReasons], name)
}

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
