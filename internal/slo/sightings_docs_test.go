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

// The pages that say when an objective without verdicts warns agree with each other, and with the code.
func TestSightings_AreDocumentedAlike(t *testing.T) {
	text := fmt.Sprintf("after %d requests if components of its Collector define SLOs but not this one, else after %.0f minutes and %d requests",
		undefinedAfterRequests, unseenAfter.Minutes(), unseenAfterRequests)
	for _, page := range []string{"docs/operations.md", "exporter/tokensliexporter/README.md"} {
		content, err := os.ReadFile(filepath.Join(testenv.Root(t), page))
		require.NoError(t, err)
		require.Contains(t, string(content), text, page)
	}
}
