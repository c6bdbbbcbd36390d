// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// inputs holds the attributes under our prefix that the processor reads, each with a bit of its own.
var inputs = map[string]uint64{
	names.Vantage: 1 << 0, names.Timeline: 1 << 1, names.Outcome: 1 << 2, numbers.QueueDuration.Attribute(): 1 << 3,
	names.ChunksDropped: 1 << 4, names.Frames: 1 << 6, names.Cut: 1 << 7,
	names.ChunkOffsets: 1 << 15, names.ChunkTokens: 1 << 16, names.ChunkChannels: 1 << 17,
	names.Interrupted: 1 << 20, numbers.AudioDuration.Attribute(): 1 << 21,
}

// tapInputs holds further inputs of spans of token_tap, and attributes that stay on them unchanged.
var tapInputs = map[string]uint64{
	names.Source: 1 << 8, numbers.PrefillDuration.Attribute(): 1 << 9, numbers.DecodeDuration.Attribute(): 1 << 10, numbers.NetworkDuration.Attribute(): 1 << 11,
	names.StartUnseen: 1 << 5, names.Unparsed: 1 << 12, names.Untimed: 1 << 13, names.Uncounted: 1 << 14,
	numbers.SpeculativeAcceptedTokens.Attribute(): 1 << 18, numbers.SpeculativeDraftTokens.Attribute(): 1 << 19,
}

// RemoveAnnotations removes the attributes under our prefix from a span, unless they are inputs, and
// returns their number. Any span may carry a vantage; the other inputs belong to a timeline. Of
// repeated keys, which a valid span does not have, the first stays: readers of the span differ in
// which one they take.
func RemoveAnnotations(own pcommon.Map) (removed int64) {
	_, packed := own.Get(names.Timeline)
	_, plain := own.Get(names.ChunkOffsets)
	withTimeline := packed || plain
	fromTap := packed && attributes.Text(own, names.Source) == names.SourceTokenTap
	var seen uint64
	own.RemoveIf(func(name string, _ pcommon.Value) bool {
		if !strings.HasPrefix(name, names.Prefix) {
			return false
		}
		input := inputs[name]
		if fromTap {
			input |= tapInputs[name]
		}
		if input&^seen != 0 && (withTimeline || name == names.Vantage) {
			seen |= input
			return false
		}
		removed++
		return true
	})
	return removed
}

// RemoveUnread removes what a span that cannot be read would still count with, such as its outcome.
func RemoveUnread(attributes pcommon.Map) {
	attributes.RemoveIf(func(name string, _ pcommon.Value) bool {
		return strings.HasPrefix(name, names.Prefix) && !timelineNames[name] && name != names.Vantage
	})
}
