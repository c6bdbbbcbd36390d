// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// docs/attributes.md marks the attributes that need full detail.
func TestDetail_IsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "attributes.md"))
	require.NoError(t, err)
	cfg, full := DefaultConfig(), 0
	for name := range derivedNames {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\|.*$").FindString(string(page))
		require.NotEmpty(t, row, name)
		require.Equal(t, !cfg.Writes(name), strings.Contains(row, "`detail: full`"), name)
		if !cfg.Writes(name) {
			full++
		}
	}
	require.Equal(t, 10, full)
}
