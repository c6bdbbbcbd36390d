// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package batching

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// small has round numbers: a prompt of 100 tokens takes 1 s, a step 0.1 s and 0.01 s per stream.
var small = Engine{Prefill: 0.01, Step: 0.1, PerStream: 0.01, Chunk: 100, Batch: 2, Memory: 1000, Queue: 2, Patience: math.Inf(1), Record: true}

type end struct {
	at     float64
	served bool
}

// serve runs an engine with requests in the order of their times.
func serve(e Engine, requests ...*Request) map[*Request]end {
	ends := map[*Request]end{}
	m := NewMachine(&e, func(q *Request, now float64, served bool) { ends[q] = end{now, served} })
	for _, q := range requests {
		m.Push(q)
	}
	m.Run(1000)
	return ends
}

func request(at, prompt, output float64) *Request {
	return &Request{At: at, Prompt: prompt, Context: prompt, Output: output}
}

func requireTimes(t *testing.T, expected, times []float64) {
	t.Helper()
	require.InDeltaSlice(t, expected, times, 1e-9)
}

func TestMachine_OneStream(t *testing.T) {
	q := request(5, 100, 3)
	ends := serve(small, q)
	require.Equal(t, 5.0, q.ScheduledAt)
	requireTimes(t, []float64{6.1, 6.21, 6.32}, q.Tokens)
	require.Equal(t, end{q.Tokens[2], true}, ends[q])
	require.Equal(t, q.Tokens[0], q.FirstAt)
}

func TestMachine_StepsGetLongerWithTheirContext(t *testing.T) {
	e := small
	e.PerStream, e.PerContext = 0, 0.001
	q := request(0, 100, 4)
	serve(e, q)
	// 101 tokens of context with the first token of the answer.
	requireTimes(t, []float64{1.1, 1.301, 1.503, 1.706}, q.Tokens)
}

func TestMachine_PrefillOfOthersDelaysAnswers(t *testing.T) {
	a, b := request(0, 100, 4), request(1.15, 150, 2)
	serve(small, a, b)
	// The prompt of b takes two steps of a: 100 tokens, then 50.
	requireTimes(t, []float64{1.1, 1.21, 2.32, 2.93}, a.Tokens)
	requireTimes(t, []float64{2.93, 3.04}, b.Tokens)
	require.InDelta(t, 1.21, b.ScheduledAt, 1e-9)
}

// The batch has two places.
func TestMachine_RequestsWaitForAPlace(t *testing.T) {
	a, b, c := request(0, 1, 10), request(0, 1, 10), request(0.01, 1, 1)
	serve(small, a, b, c)
	require.Equal(t, a.Tokens[9], b.Tokens[9])
	require.Equal(t, b.Tokens[9], c.ScheduledAt)
}

func TestMachine_RequestsWaitForMemory(t *testing.T) {
	a, b := request(0, 600, 10), request(0, 600, 1)
	serve(small, a, b)
	require.Equal(t, a.Tokens[9], b.ScheduledAt)
}

func TestMachine_RefusesBeyondTheQueue(t *testing.T) {
	e := small
	e.Batch = 1
	a, b, c, d := request(0, 1, 100), request(1, 1, 1), request(1, 1, 1), request(1, 1, 1)
	ends := serve(e, a, b, c, d)
	require.True(t, ends[c].served)
	require.False(t, ends[d].served)
	require.InDelta(t, 1, ends[d].at, 0.11, "refused in the step of its time")
	require.Empty(t, d.Tokens)
}

func TestMachine_ClientsGiveUp(t *testing.T) {
	e := small
	e.Batch, e.Patience = 1, 2
	a, b := request(0, 1, 100), request(1, 1, 1)
	ends := serve(e, a, b)
	require.Equal(t, end{ends[a].at, false}, ends[b])
}

func TestPool_TakesTheEngineWithTheFewestInFlight(t *testing.T) {
	p := NewPool(&small, 3, func(*Request, float64, bool) {})
	var got []int
	for _, output := range []float64{1000, 1000, 10, 1000} {
		got = append(got, p.Push(request(0, 1, output)))
	}
	require.Equal(t, []int{0, 1, 2, 0}, got)
	require.Equal(t, 2, p.Push(request(10, 1, 1)), "its request has ended")
}

func TestPool_IdleEnginesTakeTurns(t *testing.T) {
	p := NewPool(&small, 3, func(*Request, float64, bool) {})
	var got []int
	for i := range 4 {
		got = append(got, p.Push(request(10*float64(i), 1, 1)))
	}
	require.Equal(t, []int{0, 1, 2, 0}, got)
}

// An engine that serves one request at a time, each in a second, is a queue M/D/1: the share of requests that find it idle is
// 1 - rate.
func TestFindLimit_OfAQueueWithAKnownOne(t *testing.T) {
	e := Engine{Step: 0.1, Chunk: 100, Batch: 1, Memory: 1000, Queue: 1000, Patience: math.Inf(1)}
	poisson := func(rate float64) func() *Request {
		r, at := rand.New(rand.NewPCG(1, 1)), 0.0
		return func() *Request {
			at += r.ExpFloat64() / rate
			return request(at, 7, 10)
		}
	}
	for _, idle := range []float64{0.3, 0.5, 0.8} {
		slo := SLO{TTFT: 0.1001, TPOT: 0.1001, Objective: idle}
		limit, ok := FindLimit(&e, 1, &slo, 0.7, poisson)
		require.True(t, ok)
		require.InDelta(t, 1-idle, limit.Requests, 0.015)
		require.InEpsilon(t, 10*limit.Requests, limit.Output, 0.02)
		require.InEpsilon(t, 7*limit.Requests, limit.Prompt, 0.02)

		two, ok := FindLimit(&e, 2, &slo, 0.7, poisson)
		require.True(t, ok)
		require.Greater(t, two.Requests, limit.Requests+0.05, "one of two engines is idle more often")
	}
	_, ok := FindLimit(&e, 1, &SLO{TTFT: 0.05, TPOT: 1, Objective: 0.5}, 0.7, poisson)
	require.False(t, ok, "no load meets it")
}
