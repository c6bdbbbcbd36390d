// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package streamspan

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
)

// Each span here has 6 attributes with one value and a list of two values. It allocates itself,
// the slots of all attributes at once, 6 values, and for the list 3 objects and 2 values.
func TestMake_AllocatesTheSlotsOfAttributesOnce(t *testing.T) {
	const streams, each, perRequest = 100, 1 + 1 + 6 + 3 + 2, 40
	finished := finishedStreams(t, manyStreams(streams, "chat"))
	rules, err := judge.NewRules(nil, false)
	require.NoError(t, err)
	maker := New(&Settings{Latency: annotate.DefaultConfig(), Rules: rules, Logger: zap.NewNop()})
	span := maker.Make(finished, nil).Traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	require.Equal(t, 7, span.Attributes().Len())
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { maker.Make(finished, nil) }), float64(streams*each+perRequest))
}
