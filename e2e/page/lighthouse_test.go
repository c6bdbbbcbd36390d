// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lighthouse

package page

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Lighthouse rates the page at 95 of 100 or better. It measures on a machine that does
// other work, too, so that the best of three runs counts.
func TestLivePageLighthouse(t *testing.T) {
	folder := filepath.Join(testenv.Root(t), "e2e", "lighthouse")
	c := startPageCollector(t)
	sendBurst(t, c, 300)
	best := map[string]float64{}
	for range 3 {
		report := filepath.Join(t.TempDir(), "report.json")
		command := exec.CommandContext(t.Context(), filepath.Join(folder, "node_modules", ".bin", "lighthouse"), c.PageURL(""),
			"--preset=desktop", "--only-categories=performance,accessibility,best-practices", "--output=json", "--output-path="+report, "--quiet",
			"--chrome-flags=--headless=new --no-sandbox --disable-dev-shm-usage")
		command.Env = append(os.Environ(), "CHROME_PATH="+chromium(t))
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		content, err := os.ReadFile(report)
		require.NoError(t, err)
		var answer struct {
			Categories map[string]struct{ Score float64 }
		}
		require.NoError(t, json.Unmarshal(content, &answer))
		require.Len(t, answer.Categories, 3)
		reached := true
		for name, category := range answer.Categories {
			best[name] = max(best[name], category.Score)
			reached = reached && best[name] >= 0.95
		}
		t.Logf("best so far: %v", best)
		if reached {
			return
		}
	}
	t.Errorf("under 0.95: %v", best)
}
