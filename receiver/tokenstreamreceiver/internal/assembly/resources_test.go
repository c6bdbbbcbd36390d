// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func startedWith(resource []byte) script {
	return func(t testing.TB, part *Part) {
		require.NoError(t, part.AddStart(Start{UnixNano: t0}, nil, resource))
	}
}

func manyStarted(t testing.TB, s *Store, n int, resource func() []byte) *Batch {
	batch := s.NewBatch()
	for i := range n {
		addPart(t, batch, strconv.Itoa(i), startedWith(resource()))
	}
	return batch
}

// The memory of a resource counts once, whatever the number of its streams.
func TestResource_CountsOnce(t *testing.T) {
	const streams, size = 1000, 60_000
	resource := bytes.Repeat([]byte("r"), size)
	for name, of := range map[string]func() []byte{
		"one slice of a request":     func() []byte { return resource },
		"equal slices":               func() []byte { return bytes.Clone(resource) },
		"equal and different slices": func() []byte { return bytes.Clone(resource) },
	} {
		t.Run(name, func(t *testing.T) {
			limits := roomy
			limits.MaxStreams, limits.MaxMemory = 2*streams, 2<<20
			s, _ := newStore(limits)
			apply(t, s, manyStarted(t, s, streams, func() []byte { return nil }))
			without := s.Memory()
			tx := s.Expire(Timeouts{}, streams)
			require.NoError(t, tx.Commit())
			require.Zero(t, s.Memory())

			if name == "equal and different slices" {
				apply(t, s, batchOf(t, s, "other", startedWith([]byte("other"))))
				without = s.Memory() + without
			}
			begin(t, s, manyStarted(t, s, streams, of)).Rollback()
			apply(t, s, manyStarted(t, s, streams, of))
			require.InDelta(t, size, s.Memory()-without, 200)
			for i := range streams - 1 {
				apply(t, s, batchOf(t, s, strconv.Itoa(i), ended))
			}
			require.Greater(t, s.Memory(), int64(size))
			tx = s.Expire(Timeouts{}, streams)
			for _, f := range tx.Finished {
				require.NotEmpty(t, f.Resource)
			}
			require.NoError(t, tx.Commit())
			require.Zero(t, s.Memory())
			require.Empty(t, s.resources.shared)
		})
	}
}

// The resource of a stream counts toward the memory limit when it is new.
func TestResource_CountsTowardMaxMemory(t *testing.T) {
	limits := roomy
	limits.MaxMemory = 100_000
	s, _ := newStore(limits)
	apply(t, s, batchOf(t, s, "a", startedWith(bytes.Repeat([]byte("a"), 60_000))))
	held := s.Memory()
	_, err := s.Begin(context.Background(), batchOf(t, s, "b", startedWith(bytes.Repeat([]byte("b"), 60_000))))
	requireFull(t, err, SettingMaxMemory)
	require.Equal(t, held, s.Memory())
	apply(t, s, batchOf(t, s, "c", startedWith(bytes.Repeat([]byte("a"), 60_000))))
}
