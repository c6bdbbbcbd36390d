// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The page that says when an objective without verdicts warns agrees with the code.
func TestSightings_AreDocumented(t *testing.T) {
	text := fmt.Sprintf("after %d requests if components of its Collector define SLOs but not this one, else after %.0f minutes and %d requests",
		undefinedAfterRequests, unseenAfter.Minutes(), unseenAfterRequests)
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "operations.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), text)
}
