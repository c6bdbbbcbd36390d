// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package llmstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDecoder_DoesNotAllocatePerToken(t *testing.T) {
	for name, c := range tokenEvents {
		var chunks int
		d := newAnswerDecoder(c.x, testLimits, func(Chunk) { chunks++ })
		event := []byte(c.event)
		at := int64(1)
		d.Write(event, at)
		inOne := chunks // some events are two
		assert.Positive(t, inOne, name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { at += int64(time.Second); d.Write(event, at) }), name)
		assert.Equal(t, 102*inOne, chunks, name)
	}
}
