// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// RequireNoLeak waits until only the goroutines of before, from goleak.IgnoreCurrent, are
// left. The test fails if others still run after about 20 seconds.
func RequireNoLeak(tb testing.TB, before goleak.Option) {
	tb.Helper()
	var err error
	for range 20 { // Find itself retries for about a second
		if err = goleak.Find(before); err == nil {
			return
		}
	}
	require.NoError(tb, err)
}
