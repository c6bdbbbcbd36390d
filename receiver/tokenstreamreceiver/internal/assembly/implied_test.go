// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// opened sets an implied start with a recognisable attribute.
func opened(t testing.TB, part *Part) {
	require.NoError(t, part.ImplyStart(Start{TraceID: [16]byte{7}}, []byte("implied "), []byte("resource")))
}

func TestImpliedStart_YieldsToStartEvent(t *testing.T) {
	for name, tt := range map[string]struct {
		requests   [][]script
		start      int64 // in milliseconds
		implied    bool
		attributes string
	}{
		"starts at the earliest chunk":    {[][]script{{opened, chunks(5, 3, 4)}, {ended}}, 3, true, "implied "},
		"whole in one request":            {[][]script{{opened, chunks(5, 3, 4), ended}}, 3, true, "implied "},
		"start event before":              {[][]script{{started}, {opened, chunks(3)}, {ended}}, 0, false, ""},
		"start event after":               {[][]script{{opened, chunks(3)}, {started}, {ended}}, 0, false, "implied "},
		"start event after, with the end": {[][]script{{opened, chunks(3)}, {started, ended}}, 0, false, "implied "},
		"start event in the same request": {[][]script{{opened, chunks(3), started}, {ended}}, 0, false, ""},
		"implied twice":                   {[][]script{{opened, chunks(3)}, {opened, chunks(1)}, {ended}}, 3, true, "implied "},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(roomy)
			var last *Transaction
			for _, scripts := range tt.requests {
				rolledBack := begin(t, s, batchOf(t, s, "s", scripts...))
				require.Empty(t, rolledBack.Rejected)
				rolledBack.Rollback() // must change nothing
				last = apply(t, s, batchOf(t, s, "s", scripts...))
			}
			require.Len(t, last.Finished, 1)
			got := last.Finished[0]
			require.Equal(t, t0+tt.start*1e6, got.Start.UnixNano)
			require.Equal(t, tt.implied, got.Start.Implied)
			require.Equal(t, tt.attributes, string(got.Attributes))
			require.Zero(t, got.Duplicates())
			require.Zero(t, s.Streams())
			require.Zero(t, s.Memory())
		})
	}
}

func TestImpliedStart_WithoutChunkIsRejected(t *testing.T) {
	s, _ := newStore(roomy)
	tx := apply(t, s, batchOf(t, s, "s", opened, ended))
	require.Empty(t, tx.Finished)
	require.Equal(t, UnknownStream, ReasonOf(tx.Rejected[0].Err))
	require.Zero(t, s.Streams())
}

func TestImpliedStart_RejectsChunksOutOfRange(t *testing.T) {
	for name, before := range map[string][]script{
		"unknown stream":         nil,
		"stream ended meanwhile": {started},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(roomy)
			if before != nil {
				apply(t, s, batchOf(t, s, "s", before...))
			}
			batch := batchOf(t, s, "s", opened, chunks(-3600*1000, 1, 23*3600*1000+2))
			if before != nil {
				apply(t, s, batchOf(t, s, "s", ended))
			}
			tx := apply(t, s, batch)
			require.Len(t, tx.Rejected, 1)
			require.Equal(t, 1, tx.Rejected[0].Events)
			require.ErrorContains(t, tx.Rejected[0].Err, "24 hours after the start")
			got := apply(t, s, batchOf(t, s, "s", ended)).Finished[0]
			require.Equal(t, []int{0, 3600*1000 + 1}, offsets(t, got))
		})
	}
}

// While the batch waits for a claim, another batch opens the stream with a start event.
func TestImpliedStart_IsUndoneOnRetry(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "held", started))
	holder := begin(t, s, batchOf(t, s, "held", chunks(1)))

	batch := batchOf(t, s, "s", opened, chunks(30, 20, 24*3600*1000+10)) // the last is in range of the implied start, but not of the start event
	addPart(t, batch, "held", chunks(2))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Begin(cancelled, batch)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 1, s.Streams())

	apply(t, s, batchOf(t, s, "s", started))
	require.NoError(t, holder.Commit())
	apply(t, s, batch)
	got := apply(t, s, batchOf(t, s, "s", ended)).Finished[0]
	require.Equal(t, Start{UnixNano: t0}, got.Start)
	require.Empty(t, got.Attributes)
	require.Zero(t, got.Duplicates())
	require.Equal(t, []int{20, 30}, offsets(t, got))
}

// Later batches check against the start event, not against the implied start.
func TestImpliedStart_ReplacedStartIsPublished(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", opened, chunks(23*3600*1000)))
	apply(t, s, batchOf(t, s, "s", started))
	batch := s.NewBatch()
	part, err := batch.Part([]byte("s"))
	require.NoError(t, err)
	require.ErrorContains(t, part.AddChunk(Chunk{UnixNano: t0 + 25*3600*1e9, Tokens: 1}), "25 hours after the start")
	require.ErrorContains(t, part.AddStart(Start{UnixNano: t0 + 1}, nil, nil), "already open with another start time")
}

func TestImpliedStart_RejectsStartEventOutOfRange(t *testing.T) {
	const hour = 3600 * 1000
	for name, scripts := range map[string][]script{
		"more than a day before the last chunk": {opened, chunks(23*hour, 25*hour)},
		"more than a day after the first chunk": {opened, chunks(-25 * hour)},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(roomy)
			apply(t, s, batchOf(t, s, "s", scripts...))
			tx := apply(t, s, batchOf(t, s, "s", started))
			require.Len(t, tx.Rejected, 1)
			require.ErrorContains(t, tx.Rejected[0].Err, "more than 24 hours from its chunks")
			require.EqualValues(t, 1, s.Streams(), "the stream is unchanged")
		})
	}
}

func TestImpliedStart_IsBoundedByMaxStreamBytes(t *testing.T) {
	limits := roomy
	limits.MaxStreamBytes = 1000
	s, _ := newStore(limits)
	many := func(n int) []byte { return []byte(strings.Repeat("x", n)) }
	part, err := s.NewBatch().Part([]byte("s"))
	require.NoError(t, err)
	require.ErrorContains(t, part.ImplyStart(Start{}, many(500), many(500)), "more than 1000 bytes")
	require.False(t, part.HasStart())
	require.ErrorContains(t, part.ImplyStart(Start{Vantage: timeline.VantageEngine + 1}, nil, nil), "`vantage` is unknown")

	// End attributes are dropped, but the stream is finished.
	tx := apply(t, s, batchOf(t, s, "s", chunks(1), func(t testing.TB, p *Part) {
		require.NoError(t, p.ImplyStart(Start{}, many(300), many(300)))
		require.NoError(t, p.AddEnd(End{FinishReason: "stop"}, many(600)))
	}))
	require.Len(t, tx.Finished, 1)
	require.Empty(t, tx.Finished[0].End.Attributes)
	require.Equal(t, "stop", tx.Finished[0].End.FinishReason)
	require.Equal(t, 1, tx.Rejected[0].Events)
	require.Equal(t, Limit, ReasonOf(tx.Rejected[0].Err))

	// Attributes of a start event are dropped if its resource leaves no room.
	apply(t, s, batchOf(t, s, "s", chunks(1), func(t testing.TB, p *Part) {
		require.NoError(t, p.ImplyStart(Start{}, many(300), nil))
	}))
	tx = apply(t, s, batchOf(t, s, "s", func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0}, many(400), many(500)))
	}))
	require.Equal(t, 1, tx.Rejected[0].Events)
	got := apply(t, s, batchOf(t, s, "s", ended)).Finished[0]
	require.Len(t, got.Attributes, 300)
	require.Len(t, got.Resource, 500)
	require.Zero(t, s.Memory())
}
