// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import "github.com/tokenpulse/tokenpulse/internal/sketch"

// chunkTokens holds the tokens of each chunk of a request.
type chunkTokens struct {
	wanted bool
	tokens sketch.Sketch
}

func (c *chunkTokens) reset(wanted bool) {
	c.wanted = wanted
	c.tokens.Reset()
}

// add adds successive chunks with the same number of tokens.
func (c *chunkTokens) add(tokens int64, chunks int) {
	if c.wanted {
		c.tokens.Add(float64(tokens), uint64(chunks))
	}
}

// tokensPerChunk keeps the tokens of the chunks only if all of them are known.
func (d *derivation) tokensPerChunk() {
	if !d.chunkTokensKnown() {
		d.arrivals.chunkTokens.tokens.Reset()
	}
}

// chunkTokensKnown reports whether the number of tokens is known of every chunk.
func (d *derivation) chunkTokensKnown() bool { return !d.partial() && !d.request.TokensAssumed }

// absenceOfChunkTokens returns why the tokens of observed chunks are not known.
func (d *derivation) absenceOfChunkTokens() Absence {
	switch {
	case !d.arrivals.chunkTokens.wanted || d.arrivals.chunks == 0 || d.chunkTokensKnown():
		return Present
	case d.dropped() > 0:
		return DroppedEvents
	default:
		return NotReported
	}
}
