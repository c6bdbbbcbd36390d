// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

const (
	// timesFaster shortens an hour of the rules to 36 seconds.
	timesFaster = 100
	// shortest is the smallest scaled duration: a busy machine needs time between evaluations.
	shortest = time.Second
)

// durations also matches selectors of bands, whose bounds are fixed.
var durations = regexp.MustCompile(`silent=~"[^"]*"|\b(?:[0-9]+(?:ms|[smhdwy]))+\b`)

// scaledDurations scales every duration in a text.
func scaledDurations(t *testing.T, text string) string {
	t.Helper()
	return durations.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "silent") {
			return found
		}
		return scaled(t, found).String()
	})
}

// scaledRules writes the example's rules with every duration scaled, also in the names
// of recorded metrics, and returns the file.
func scaledRules(t *testing.T) string {
	t.Helper()
	return scaledExample(t, "rules.yaml")
}

// scaledExample writes a file of the Prometheus example with every duration scaled, and
// returns its path. Each pair of further arguments is an old and a new text.
func scaledExample(t *testing.T, name string, replacements ...string) string {
	t.Helper()
	content, err := os.ReadFile(prometheusExample(t, name))
	require.NoError(t, err)
	faster := scaledDurations(t, string(content))
	for i := 0; i < len(replacements); i += 2 {
		require.Contains(t, faster, replacements[i], name)
		faster = strings.ReplaceAll(faster, replacements[i], replacements[i+1])
	}
	return collector.WriteFile(t, t.TempDir(), name, faster)
}

// scaled returns the length that a duration of the rules has in a test.
func scaled(t *testing.T, duration string) model.Duration {
	t.Helper()
	length, err := model.ParseDuration(duration)
	require.NoError(t, err)
	return max(length/timesFaster, model.Duration(shortest))
}
