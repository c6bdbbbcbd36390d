// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// watched returns a store all of whose streams but "foreign" ones are of one engine, whose bound is 2 minutes.
func watched() (*Store, *clock, *liveness.Engine) {
	s, c := newStore(roomy)
	engine := liveness.New(liveness.Settings{})
	s.WatchEngines(func(s *Stream) *liveness.Engine {
		if s.ID == "foreign" {
			return nil
		}
		return engine
	})
	return s, c, engine
}

func requireState(t *testing.T, want liveness.State, e *liveness.Engine, c *clock) {
	t.Helper()
	v := e.Verdict(c.now)
	require.Equal(t, want, v.State, "%+v", v)
}

func TestEngines_OpenStreamsAreWitnesses(t *testing.T) {
	s, c, engine := watched()
	apply(t, s, batchOf(t, s, "a", started))
	requireState(t, liveness.Unknown, engine, c)
	apply(t, s, batchOf(t, s, "a", chunks(1)))
	requireState(t, liveness.Producing, engine, c)
	for range 10 { // each part is a token, though the sender's clock stands still
		c.now += time.Minute
		apply(t, s, batchOf(t, s, "a", chunks(1)))
		requireState(t, liveness.Producing, engine, c)
	}
	c.now += 3 * time.Minute
	requireState(t, liveness.Stuck, engine, c)
	c.now += time.Second
	apply(t, s, batchOf(t, s, "a", chunks(2), ended))
	requireState(t, liveness.Idle, engine, c)
}

// Events without a token are no sign of life.
func TestEngines_StartsAndRepeatsAreNoTokens(t *testing.T) {
	s, c, engine := watched()
	apply(t, s, batchOf(t, s, "a", started, numbered(0, 1)))
	for range 3 {
		c.now += time.Minute
		apply(t, s, batchOf(t, s, "a", started, numbered(0, 1)))
	}
	requireState(t, liveness.Stuck, engine, c)
}

func TestEngines_WholeStreamsAreTokens(t *testing.T) {
	s, c, engine := watched()
	apply(t, s, batchOf(t, s, "a", started, chunks(1)))
	for range 3 {
		c.now += time.Minute
		apply(t, s, batchOf(t, s, "whole", started, chunks(1), ended))
		apply(t, s, batchOf(t, s, "foreign", started, chunks(1), ended))
	}
	requireState(t, liveness.Producing, engine, c)
	apply(t, s, batchOf(t, s, "b", started)) // by now, "a" hangs
	for range 3 {
		c.now += time.Minute
		apply(t, s, batchOf(t, s, "empty", started, ended))
		begin(t, s, batchOf(t, s, "refused", started, chunks(1), ended)).Rollback()
	}
	requireState(t, liveness.Stuck, engine, c)
}

// The sender is gone, with or without the engine.
func TestEngines_ExpiredStreamsAreNoTokens(t *testing.T) {
	s, c, engine := watched()
	apply(t, s, batchOf(t, s, "a", started, chunks(1)))
	c.now += 3 * time.Minute
	requireState(t, liveness.Stuck, engine, c)
	tx := s.Expire(minute, 10)
	require.Len(t, tx.Finished, 1)
	require.NoError(t, tx.Commit())
	v := engine.Verdict(c.now)
	require.Equal(t, liveness.Stuck, v.State)
	require.Zero(t, v.Waiting+v.Decoding+v.Hung+v.Untracked)
}

func TestEngines_FinishedStreamsNameTheirEngine(t *testing.T) {
	s, _, engine := watched()
	apply(t, s, batchOf(t, s, "a", started))
	require.Same(t, engine, apply(t, s, batchOf(t, s, "a", ended)).Finished[0].Engine)
	require.Same(t, engine, apply(t, s, batchOf(t, s, "b", started, ended)).Finished[0].Engine)
	require.Nil(t, apply(t, s, batchOf(t, s, "foreign", started, ended)).Finished[0].Engine)
}

// None of these ends shows that the engine generates tokens.
func TestEngines_StreamsThatEndWithoutATokenAreNoTokens(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *Store){
		"cancelled": func(t *testing.T, s *Store) {
			apply(t, s, batchOf(t, s, "b", func(t testing.TB, p *Part) { require.NoError(t, p.AddEnd(End{Cancelled: true}, nil)) }))
		},
		"with an error": func(t *testing.T, s *Store) {
			apply(t, s, batchOf(t, s, "b", func(t testing.TB, p *Part) { require.NoError(t, p.AddEnd(End{Error: "overloaded"}, nil)) }))
		},
		"without an end": func(t *testing.T, s *Store) { require.NoError(t, s.Expire(minute, 10).Commit()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, c, engine := watched()
			apply(t, s, batchOf(t, s, "a", started, chunks(1), ended))
			apply(t, s, batchOf(t, s, "b", started))
			c.now += 121 * time.Second
			requireState(t, liveness.Stuck, engine, c)
			end(t, s)
			requireState(t, liveness.Stuck, engine, c)
		})
	}
}
