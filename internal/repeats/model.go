// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package repeats

import "strings"

// sameModel reports whether two names are of one model: `openai/gpt-5` and `gpt-5` are, and so are `gpt-5` and
// `gpt-5-2025-08-07`, while `gpt-5-mini` and other dates are other models.
func sameModel(a, b string) bool {
	if a == b {
		return true
	}
	a, versionOfA := splitModel(a)
	b, versionOfB := splitModel(b)
	return a == b && (versionOfA == "" || versionOfB == "" || versionOfA == versionOfB)
}

// minVersion is the number of digits that make the end of a name a version, such as 002.
const minVersion = 3

// splitModel returns a name in lower case without its route, and the version that it ends with. The version `latest` is
// any.
func splitModel(name string) (model, version string) {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	for i := range len(name) {
		switch name[i] {
		case '-', '@', ':':
			if isVersion(name[i+1:]) {
				return name[:i], strings.Map(digit, name[i+1:])
			}
		}
	}
	return name, ""
}

// isVersion reports whether a text is a date or a number of enough digits: 2025-08-07 is, and the 4 of gpt-4-0613 is not
// part of it.
func isVersion(text string) bool {
	if text == "latest" {
		return true
	}
	digits := 0
	for part := range strings.SplitSeq(text, "-") {
		if len(part) < 2 || strings.Trim(part, "0123456789") != "" {
			return false
		}
		digits += len(part)
	}
	return digits >= minVersion
}

// digit drops all but digits, so that 2025-08-07 and 20250807 are equal.
func digit(r rune) rune {
	if '0' <= r && r <= '9' {
		return r
	}
	return -1
}
