// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import "github.com/tokenpulse/tokenpulse/internal/timeline"

// channelPlan is the number of tokens on each channel, in the order of generation.
type channelPlan struct {
	reasoning, content, toolCall int
}

func (p channelPlan) total() int { return p.reasoning + p.content + p.toolCall }

func (p channelPlan) finishReason() string {
	switch {
	case p.toolCall > 0:
		return "tool_calls"
	case p.total() == outputMax, p.content == 0:
		return "length"
	default:
		return "stop"
	}
}

// at returns the channel of token n, and how many tokens of the channel remain,
// including token n.
func (p channelPlan) at(n int) (timeline.Channel, int) {
	switch {
	case n < p.reasoning:
		return timeline.Reasoning, p.reasoning - n
	case n < p.reasoning+p.content:
		return timeline.Content, p.reasoning + p.content - n
	default:
		return timeline.ToolCall, p.total() - n
	}
}
