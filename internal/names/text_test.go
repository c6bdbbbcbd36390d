// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

func TestCategory_ReplacesWhatMayBeText(t *testing.T) {
	for text, expected := range map[string]string{
		"": "", "stop": "stop", "401": "401", "openai.RateLimitError": "openai.RateLimitError", "a_b-c:d/e": "a_b-c:d/e",
		strings.Repeat("a", 64): strings.Repeat("a", 64), strings.Repeat("a", 65): "_OTHER",
		"two words": "_OTHER", "é": "_OTHER", "a\n": "_OTHER", `"`: "_OTHER",
	} {
		require.Equal(t, expected, names.Category(text), text)
	}
}
