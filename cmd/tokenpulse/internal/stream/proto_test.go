// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// ToProto converts channels without a table.
func TestChannel_EqualsWireSchema(t *testing.T) {
	require.Len(t, tokenpulsev1.Channel_name, int(timeline.Audio)+1)
	require.EqualValues(t, tokenpulsev1.Channel_CHANNEL_CONTENT, timeline.Content)
	require.EqualValues(t, tokenpulsev1.Channel_CHANNEL_REASONING, timeline.Reasoning)
	require.EqualValues(t, tokenpulsev1.Channel_CHANNEL_TOOL_CALL, timeline.ToolCall)
	require.EqualValues(t, tokenpulsev1.Channel_CHANNEL_AUDIO, timeline.Audio)
}
