// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package llmstream

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDecoder_DoesNotAllocatePerToken(t *testing.T) {
	for name, c := range tokenEvents {
		var chunks int
		d := newAnswerDecoder(c.x, testLimits, func(Chunk) { chunks++ })
		event := []byte(c.event)
		d.Write(event, 1)
		inOne := chunks // some events are two
		assert.Positive(t, inOne, name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { d.Write(event, 2) }), name)
		assert.Equal(t, 102*inOne, chunks, name)
	}
}
