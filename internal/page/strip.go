// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/tokenpulse/tokenpulse/internal/slowest"

// strip shows the chunks of a request.
type strip struct {
	At       []number `json:"at"`
	Tokens   []uint32 `json:"tokens"`
	Channels []string `json:"channels"`
	Stalled  []int    `json:"stalled"`
	Dropped  int      `json:"dropped"`
}

// maxChunks limits the chunks of a strip.
const maxChunks = 5000

// newStrip returns nil without chunks that are known.
func newStrip(chunks *slowest.Strip) *strip {
	if chunks == nil {
		return nil
	}
	s := &strip{
		At: []number{}, Tokens: append([]uint32{}, chunks.Tokens...), Channels: []string{},
		Stalled: append([]int{}, chunks.Stalled...), Dropped: chunks.Dropped,
	}
	for i, at := range chunks.At {
		s.At = append(s.At, number(at.Seconds()))
		s.Channels = append(s.Channels, chunks.Channels[i].String())
	}
	return s
}
