// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

const (
	// timesFaster shortens an hour of the rules to 36 seconds.
	timesFaster = 100
	// shortest is the smallest scaled duration: a busy machine needs time between evaluations.
	shortest = time.Second
)

var durations = regexp.MustCompile(`\b(?:[0-9]+(?:ms|[smhdwy]))+\b`)

// scaledRules writes the example's rules with every duration scaled, also in the names
// of recorded metrics, and returns the file.
func scaledRules(t *testing.T) string {
	t.Helper()
	rules, err := os.ReadFile(prometheusExample(t, "rules.yaml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	faster := durations.ReplaceAllStringFunc(string(rules), func(duration string) string {
		return scaled(t, duration).String()
	})
	require.NoError(t, os.WriteFile(file, []byte(faster), 0o600))
	return file
}

// scaled returns the length that a duration of the rules has in a test.
func scaled(t *testing.T, duration string) model.Duration {
	t.Helper()
	length, err := model.ParseDuration(duration)
	require.NoError(t, err)
	return max(length/timesFaster, model.Duration(shortest))
}
