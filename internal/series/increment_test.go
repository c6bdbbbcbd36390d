// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// A series that gets increments only must not expire between them.
func TestIncrease_KeepsTheSeriesAlive(t *testing.T) {
	e := newTestEngine(nil)
	idle := e.config.SeriesExpiration
	for _, at := range []time.Duration{0, idle * 2 / 3, idle * 4 / 3} {
		e.Increase(&Increment{Dimensions: []string{"m"}, Arrival: e.at(at), Part: PartRequests, Requests: 1})
		require.Zero(t, e.Expire(e.at(at+idle*2/3)))
	}
	require.Equal(t, 1, e.Expire(e.at(idle*4)))
}

// Data points of several producers arrive in any order: an older exemplar must not replace a
// newer one.
func TestIncrease_KeepsTheLatestExemplar(t *testing.T) {
	e := newTestEngine(nil)
	exemplar := func(second byte) []Exemplar {
		return []Exemplar{{TraceID: [16]byte{second}, SpanID: [8]byte{second}, Value: 0.5, UnixNano: e.at(time.Duration(second) * time.Second).UnixNano()}}
	}
	var values sketch.Sketch
	values.Add(0.5, 1)
	for _, second := range []byte{1, 3, 2} {
		at := Increment{Dimensions: []string{"m"}, Arrival: e.at(0), Requests: 1, Exemplars: exemplar(second)}
		ttft, verdict := at, at
		ttft.Part, ttft.Quantity, ttft.Values = PartValues, numbers.TimeToFirstToken, &values
		verdict.Part, verdict.SLO, verdict.Verdict = PartVerdicts, "tpot", slo.Bad
		e.Increase(&at)
		e.Increase(&ttft)
		e.Increase(&verdict)
	}
	latest := exemplar(3)
	var found []Exemplar
	e.Collect(e.at(0), func(s *Snapshot) {
		for _, x := range s.Outcomes[Success].Distributions[numbers.TimeToFirstToken].Exemplars {
			if x.Set() {
				found = append(found, x)
			}
		}
		require.Len(t, s.SLOs, 1)
		require.Equal(t, latest[0].TraceID, s.SLOs[0].Bad.TraceID)
		require.InDelta(t, 1, s.SLOs[0].Bad.Value, 0)
	})
	require.Equal(t, latest, found)
}
