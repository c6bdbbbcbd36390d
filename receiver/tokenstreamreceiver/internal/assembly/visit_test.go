// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// startedAs adds a start with attributes, by which tests tell streams apart.
func startedAs(attributes string, vantage timeline.Vantage) script {
	return func(t testing.TB, part *Part) {
		require.NoError(t, part.AddStart(Start{UnixNano: t0, Vantage: vantage}, []byte(attributes), []byte("resource")))
	}
}

// visited returns one text for each open stream, by its attributes.
func visited(s *Store, timeouts Timeouts) map[string]string {
	all := map[string]string{}
	s.Visit(timeouts, func(v *Visited) {
		phase := "waits"
		if v.Decoding {
			phase = "decodes"
		}
		all[string(v.Attributes)] = fmt.Sprint(v.Vantage, " ", phase, " ", v.Silent, " ", string(v.Resource))
	})
	return all
}

func TestVisit_SilenceBeginsWithTheLastNewToken(t *testing.T) {
	s, c := newStore(Limits{MaxStreams: 10, MaxChunksPerStream: 2, MaxStreamBytes: 1 << 16, MaxMemory: 1 << 30})
	timeouts := Timeouts{Idle: time.Hour, FirstToken: time.Hour}
	noToken := func(t testing.TB, p *Part) { require.NoError(t, p.AddChunk(Chunk{UnixNano: t0})) }
	requireStream := func(want, after string) {
		t.Helper()
		require.Equal(t, map[string]string{"a": want + " resource"}, visited(s, timeouts), after)
	}
	start := startedAs("a", timeline.VantageUnspecified)
	tx := begin(t, s, batchOf(t, s, "1", start))
	require.Empty(t, visited(s, timeouts), "the start is not committed")
	tx.Rollback()
	require.Empty(t, visited(s, timeouts), "the start is refused")
	apply(t, s, batchOf(t, s, "1", start))
	c.now += time.Second
	requireStream("server waits 1s", "the start")
	apply(t, s, batchOf(t, s, "1", start, noToken))
	requireStream("server waits 1s", "events without a token")
	apply(t, s, batchOf(t, s, "1", numbered(1, 10)))
	requireStream("server decodes 0s", "a token")
	c.now += 2 * time.Second
	apply(t, s, batchOf(t, s, "1", noToken))
	requireStream("server decodes 2s", "a keep-alive")
	apply(t, s, batchOf(t, s, "1", numbered(1, 10)))
	requireStream("server decodes 2s", "a repeated chunk")
	apply(t, s, batchOf(t, s, "1", numbered(2, 20)))
	requireStream("server decodes 0s", "another token")
	c.now += 3 * time.Second
	apply(t, s, batchOf(t, s, "1", numbered(3, 30)))
	requireStream("server decodes 0s", "a token beyond max_chunks_per_stream")
	c.now += 4 * time.Second
	tx = begin(t, s, batchOf(t, s, "1", numbered(4, 40), ended))
	requireStream("server decodes 4s", "the pipeline has not accepted the end")
	tx.Rollback()
	requireStream("server decodes 4s", "the pipeline refused the end")
	apply(t, s, batchOf(t, s, "1", ended))
	require.Empty(t, visited(s, timeouts))
}

// In order and out of order, with several tokens in a chunk, and beyond the limit of chunks.
func TestVisit_CountsTokensSinceTheStart(t *testing.T) {
	s, _ := newStore(Limits{MaxStreams: 10, MaxChunksPerStream: 4, MaxStreamBytes: 1 << 16, MaxMemory: 1 << 30})
	several := func(seq, ms int, tokens uint32) script {
		return func(t testing.TB, p *Part) {
			require.NoError(t, p.AddChunk(Chunk{UnixNano: t0 + int64(ms)*1e6, Tokens: tokens, Seq: uint64(seq), Numbered: true}))
		}
	}
	requireTokens := func(want int64, after string) {
		t.Helper()
		all := 0
		s.Visit(Timeouts{Idle: time.Hour, FirstToken: time.Hour}, func(v *Visited) {
			all++
			require.Equal(t, want, v.Tokens, after)
			require.Equal(t, t0, v.Start, after)
		})
		require.Equal(t, 1, all, after)
	}
	apply(t, s, batchOf(t, s, "1", startedAs("a", timeline.VantageServer)))
	requireTokens(0, "the start")
	apply(t, s, batchOf(t, s, "1", several(1, 10, 5), several(2, 20, 1)))
	requireTokens(6, "two chunks")
	apply(t, s, batchOf(t, s, "1", several(2, 20, 1)))
	requireTokens(6, "a repeat")
	apply(t, s, batchOf(t, s, "1", several(4, 40, 2)))
	apply(t, s, batchOf(t, s, "1", several(3, 15, 30)))
	requireTokens(38, "a chunk out of order")
	tx := begin(t, s, batchOf(t, s, "1", several(5, 50, 100)))
	tx.Rollback()
	requireTokens(38, "a refused chunk")
	apply(t, s, batchOf(t, s, "1", several(6, 60, 100)))
	requireTokens(38, "a chunk beyond the limit")
}

func TestVisit_LeavesOutExpiredStreams(t *testing.T) {
	s, c := newStore(roomy)
	timeouts := Timeouts{Idle: time.Minute, FirstToken: 2 * time.Minute}
	for i := range 200 { // in all shards
		apply(t, s, batchOf(t, s, "waits"+strconv.Itoa(i), startedAs("waits", timeline.VantageClient)))
		apply(t, s, batchOf(t, s, "decodes"+strconv.Itoa(i), startedAs("decodes", timeline.VantageEngine), chunks(1)))
	}
	count := func() (all int) {
		s.Visit(timeouts, func(*Visited) { all++ })
		return all
	}
	require.Equal(t, 400, count())
	c.now += time.Minute - 1
	require.Equal(t, map[string]string{"waits": "client waits 59.999999999s resource", "decodes": "engine decodes 59.999999999s resource"}, visited(s, timeouts))
	c.now++
	require.Equal(t, 200, count(), "those with a token have expired")
	refused := s.Expire(timeouts, 400)
	refused.Rollback()
	require.Equal(t, 200, count(), "the pipeline refuses the expired ones")
	c.now += time.Minute
	require.Zero(t, count())
}

// Streams with other attributes than their first ones, which a transaction changes meanwhile.
func TestVisit_RunsBesideTransactions(t *testing.T) {
	s, _ := newStore(Limits{MaxStreams: 1000, MaxChunksPerStream: 1 << 20, MaxStreamBytes: 1 << 20, MaxMemory: 1 << 30})
	timeouts := Timeouts{Idle: time.Hour, FirstToken: time.Hour}
	var senders sync.WaitGroup
	for sender := range 4 {
		senders.Go(func() {
			for range 50 {
				id := strconv.Itoa(sender)
				apply(t, s, batchOf(t, s, id, startedAs("a", timeline.VantageServer)))
				for i := range 20 {
					apply(t, s, batchOf(t, s, id, startedAs(strconv.Itoa(i%10), timeline.VantageServer), chunks(i)))
				}
				apply(t, s, batchOf(t, s, id, ended))
			}
		})
	}
	reported := "a01234567890123456789"
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	for {
		s.Visit(timeouts, func(v *Visited) {
			if !strings.HasPrefix(reported, string(v.Attributes)) || string(v.Resource) != "resource" {
				t.Errorf("%q, %q", v.Attributes, v.Resource)
			}
		})
		select {
		case <-done:
			require.Empty(t, visited(s, timeouts))
			return
		default:
		}
	}
}
