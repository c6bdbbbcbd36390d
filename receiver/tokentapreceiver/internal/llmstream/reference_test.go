// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// Streams that no one recorded: events of a recording dropped, repeated and in another
// order, cut at random. A plain parser that reads the whole answer must agree on the
// channels of each event.
func TestDecoder_AgreesWithAPlainParser(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 3))
	compared := map[string]int{}
	for _, r := range recorded.Answers(t) {
		name := r.Family()
		if name == "" || len(r.Body) > 100_000 {
			continue
		}
		units := r.Units()
		require.Len(t, units, int(r.TotalChunks), r.File)
		for range 8 {
			stream := []recorded.Unit{units[0]} // it shows the format
			for range random.IntN(2 * len(units)) {
				stream = append(stream, units[random.IntN(len(units))])
			}
			var body []byte
			var want []Channels
			for _, u := range stream {
				body = append(body, u.Raw...)
				want = append(want, Channels(recorded.ChannelsOf(t, name, u)))
			}
			s := decode(headOf(&r), testLimits, body, offsets(random, len(body))...)
			got := make([]Channels, len(want))
			for _, c := range s.Chunks {
				require.Less(t, int(c.Index), len(got), r.File)
				got[c.Index] = c.Channels
			}
			require.Equal(t, want, got, r.File)
			require.Equal(t, int64(len(stream)), s.Events, r.File)
			compared[name]++
		}
	}
	for _, name := range recorded.Families() {
		assert.NotZero(t, compared[name], name)
	}
}
