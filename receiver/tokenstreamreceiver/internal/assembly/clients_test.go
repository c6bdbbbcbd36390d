// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

func addr(i int) httpguard.Client {
	return httpguard.Client{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}
}

// openAs opens streams of a client in one batch.
func openAs(t testing.TB, s *Store, client httpguard.Client, ids ...string) error {
	events := map[string]script{}
	for _, id := range ids {
		events[id] = started
	}
	return applyAs(t, s, client, events)
}

// applyAs applies events of streams of a client in one batch.
func applyAs(t testing.TB, s *Store, client httpguard.Client, events map[string]script) error {
	batch := s.NewBatch()
	batch.Client = client
	for id, f := range events {
		addPart(t, batch, id, f)
	}
	tx, err := s.Begin(context.Background(), batch)
	if err == nil {
		require.NoError(t, tx.Commit())
	}
	return err
}

func requireFull(t testing.TB, err error, setting string) {
	t.Helper()
	var full *FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, setting, full.Setting)
}

// openUntilFull opens streams of a client one by one until a limit refuses one.
func openUntilFull(t testing.TB, s *Store, client httpguard.Client, setting string) (opened int) {
	t.Helper()
	for {
		err := openAs(t, s, client, fmt.Sprint(client, opened))
		if err != nil {
			requireFull(t, err, setting)
			return opened
		}
		opened++
		require.LessOrEqual(t, opened, 100_000)
	}
}

func TestMaxSharePerClient_KeepsHalfForOthers(t *testing.T) {
	limits := roomy
	limits.MaxStreams, limits.MaxStreamsPerClient = 1000, 100
	s, _ := newStore(limits)
	require.Equal(t, 500, openUntilFull(t, s, addr(0), SettingMaxSharePerClient), "without a limit while half is free")
	for i := 1; i <= 5; i++ {
		require.Equal(t, 100, openUntilFull(t, s, addr(i), map[bool]string{false: SettingMaxSharePerClient, true: SettingMaxStreams}[i == 5]))
	}
	require.Len(t, s.clients.usages, 6, "a refused client has no entry")
	requireFull(t, openAs(t, s, addr(9), "other"), SettingMaxStreams)

	require.NoError(t, openAs(t, s, addr(1), fmt.Sprint(addr(1), 7)), "an open stream is not new")
	apply(t, s, batchOf(t, s, fmt.Sprint(addr(1), 7), ended))
	requireFull(t, openAs(t, s, addr(0), "other"), SettingMaxSharePerClient)
	require.NoError(t, openAs(t, s, httpguard.Client{Subject: "a"}, "other"))

	tx := s.Expire(Timeouts{}, 10_000)
	require.NoError(t, tx.Commit())
	require.Empty(t, s.clients.usages, "it holds only clients with open streams")
}

// A client at its limit may replace its streams in one batch: a refused one could never
// be retried with success.
func TestMaxSharePerClient_AllowsReplacement(t *testing.T) {
	limits := roomy
	limits.MaxStreams, limits.MaxStreamsPerClient = 10, 1
	s, _ := newStore(limits)
	require.NoError(t, openAs(t, s, addr(0), "1", "2", "3", "4", "5"))
	require.NoError(t, openAs(t, s, addr(1), "6"))
	replace := func(client httpguard.Client) error {
		return applyAs(t, s, client, map[string]script{"6": ended, "7": started})
	}
	requireFull(t, replace(addr(0)), SettingMaxSharePerClient)
	require.NoError(t, replace(addr(1)))
	require.EqualValues(t, 6, s.Streams())
	require.Equal(t, 1, s.clients.usages[addr(1)].streams)
}

func TestRefuseStarts_LetsOtherEventsThrough(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "open", started))
	batch := batchOf(t, s, "new", started, chunks(1))
	batch.RefuseStarts = true
	_, err := s.Begin(context.Background(), batch)
	requireFull(t, err, SettingPipeline)
	require.EqualValues(t, 1, s.Streams())
	for _, test := range []struct { // in this order: the end closes the stream
		name   string
		events script
	}{{"chunk", chunks(1)}, {"repeated start", started}, {"end", ended}} {
		t.Run(test.name, func(t *testing.T) {
			batch := batchOf(t, s, "open", test.events)
			batch.RefuseStarts = true
			apply(t, s, batch)
		})
	}
	t.Run("a batch that also ends a stream tests the pipeline", func(t *testing.T) {
		batch.RefuseStarts = true
		addPart(t, batch, "whole", started, ended)
		apply(t, s, batch)
		require.EqualValues(t, 1, s.Streams())
	})
}
