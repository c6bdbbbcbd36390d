// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = time.Second

// taught returns an engine that has served prompts of 100,000 bytes, which take 2 seconds each, and the time.
func taught() (*Engine, time.Duration) {
	e, now := New(Settings{}), second
	for range 40 {
		r := e.Begin(now, 100_000, true)
		r.Token(now + 2*second)
		r.Token(now + 3*second)
		r.End(now+3*second, Completed, Usage{Input: 25_000})
		now += 30 * second
	}
	return e, now
}

func TestVerdict_BoundIsBaseAndFactorTimesLearnedPrefill(t *testing.T) {
	e, now := taught()
	e.Begin(now, 100_000, true)
	v := e.Verdict(now + 10*second)
	require.Equal(t, Producing, v.State)
	require.InDelta(t, 11, v.Bound.Seconds(), 0.5) // 5 s + 3 × 2 s
	require.EqualValues(t, 25_000, v.Tokens)
	v = e.Verdict(now + 12*second)
	require.Equal(t, Stuck, v.State)
	require.Equal(t, NoToken, v.Reason)
	require.Equal(t, now+12*second, v.Since)
	require.True(t, v.Learned)
}

func TestVerdict_FurtherRequestsDoNotHideASilence(t *testing.T) {
	e, now := taught()
	for i := range time.Duration(12) {
		e.Begin(now+i*second, 100_000, i%2 == 0)
	}
	require.Equal(t, Producing, e.Verdict(now+10*second).State)
	require.Equal(t, Stuck, e.Verdict(now+12*second).State)
}

func TestVerdict_StuckEndsWithAToken(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 100_000, true)
	require.Equal(t, Stuck, e.Verdict(now+20*second).State)
	r.Token(now + 21*second)
	require.Equal(t, Producing, e.Verdict(now+22*second).State)
}

func TestVerdict_StuckStaysAfterClientsGaveUp(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 100_000, true)
	require.Equal(t, Stuck, e.Verdict(now+20*second).State)
	r.End(now+21*second, Abandoned, Usage{})
	require.Equal(t, Stuck, e.Verdict(now+30*second).State)
}

// Clients that give up before the bound and ask again do not hide a wedge.
func TestVerdict_WaitsOfAbandonedRequestsAddUp(t *testing.T) {
	e, now := taught()
	for range 4 {
		r := e.Begin(now, 1000, true)
		r.End(now+9*second, Abandoned, Usage{})
		now += 10 * second
	}
	e.Begin(now, 1000, true)
	require.Equal(t, Stuck, e.Verdict(now+second).State)
}

func TestVerdict_WedgeTeachesNothing(t *testing.T) {
	e, now := taught()
	bound, _ := e.bound(now, 100_000)
	for range 20 {
		r := e.Begin(now, 100_000, true)
		r.Token(now + 90*second)
		r.End(now+91*second, Completed, Usage{Input: 25_000})
		now += 100 * second
	}
	after, _ := e.bound(now, 100_000)
	require.LessOrEqual(t, after, bound)
}

// The stream that goes on shows that the wedge is over. Requests that waited beside it show nothing of their prefill.
func TestVerdict_AWedgeInMidAnswerTeachesNothing(t *testing.T) {
	e, now := taught()
	other := e.Begin(now, 1000, true)
	other.Token(now)
	for range 20 {
		r := e.Begin(now, 100_000, true)
		require.Equal(t, Stuck, e.Verdict(now+20*second).State)
		other.Token(now + 90*second)
		require.Equal(t, Producing, e.Verdict(now+91*second).State)
		r.Token(now + 92*second)
		r.End(now+93*second, Completed, Usage{Input: 25_000})
		now += 100 * second
		other.Token(now)
	}
	bound, _ := e.bound(now, 100_000)
	require.InDelta(t, 11, bound.Seconds(), 0.5)
}

func TestVerdict_SilentStreamsAreNoWitnesses(t *testing.T) {
	for _, name := range []string{"not streamed", "hidden reasoning", "server-run tool"} {
		t.Run(name, func(t *testing.T) {
			e, now := taught()
			e.Begin(now, 100_000, false)
			v := e.Verdict(now + time.Hour)
			require.Equal(t, Unknown, v.State)
			require.Equal(t, NoWitness, v.Reason)
			require.Equal(t, 1, v.Silent)
		})
	}
}

func TestVerdict_HeldToolCallIsNoWitnessUntilItGoesOn(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 100_000, true)
	r.Token(now + second)
	r.SetWitness(now+2*second, false)
	require.Equal(t, Unknown, e.Verdict(now+60*second).State)
	r.SetWitness(now+60*second, true)
	require.Equal(t, Producing, e.Verdict(now+61*second).State)
	require.Equal(t, Stuck, e.Verdict(now+90*second).State)
}

func TestVerdict_OneStreamHangsWhileOthersGoOn(t *testing.T) {
	e, now := taught()
	hangs, other := e.Begin(now, 1000, true), e.Begin(now, 1000, true)
	hangs.Token(now + second)
	for i := range 30 {
		other.Token(now + second*time.Duration(i+1))
	}
	v := e.Verdict(now + 31*second)
	require.Equal(t, Producing, v.State)
	require.Equal(t, 1, v.Hung)
	other.End(now+31*second, Completed, Usage{})
	v = e.Verdict(now + time.Hour)
	require.NotEqual(t, Stuck, v.State, "the stream that hangs is no witness")
	require.Equal(t, 1, v.Hung)
}

func TestVerdict_PrefillStopsWhileDecodingGoesOn(t *testing.T) {
	e, now := taught()
	e.phase.most = 2 // the engine admits before three streams end
	var streams []*Request
	for range 60 {
		r := e.Begin(now, 1000, true)
		r.Token(now + second)
		streams = append(streams, r)
	}
	e.Begin(now+second, 1000, true)
	for i, r := range streams[:50] {
		at := now + 2*second + time.Duration(i)*second/2
		streams[59].Token(at)
		r.End(at, Completed, Usage{})
	}
	streams[59].Token(now + 28*second)
	v := e.Verdict(now + 28*second)
	require.Equal(t, Stuck, v.State)
	require.Equal(t, NoFirstToken, v.Reason)
	streams[59].Token(now + 29*second)
	require.Equal(t, Stuck, e.Verdict(now+30*second).State, "tokens of others do not end it")
}

// While nothing waits, streams end: that shows nothing of the request that comes then, until it waits for longer than the bound.
func TestVerdict_ARequestAfterManyStreamsEndedIsAdmittedWithinTheBound(t *testing.T) {
	e, now := taught()
	e.phase.most = 2
	var streams []*Request
	for range 60 {
		r := e.Begin(now, 1000, true)
		r.Token(now)
		streams = append(streams, r)
	}
	now += 30 * second
	for _, r := range streams[1:] {
		r.Token(now)
		r.End(now, Completed, Usage{})
	}
	goesOn := func(state State) {
		t.Helper()
		streams[0].Token(now)
		require.Equal(t, state, e.Verdict(now).State)
	}
	goesOn(Producing)
	e.Begin(now, 1000, true)
	for range 5 {
		now += second
		goesOn(Producing)
	}
	now += second
	goesOn(Stuck)
}

func TestVerdict_Idle(t *testing.T) {
	e, now := taught()
	require.Equal(t, Idle, e.Verdict(now).State)
	require.Equal(t, Idle, e.Verdict(now+time.Hour).State)
}

func TestVerdict_UnknownBeforeAnyToken(t *testing.T) {
	e := New(Settings{})
	e.Begin(second, 1000, true)
	v := e.Verdict(time.Hour)
	require.Equal(t, Unknown, v.State)
	require.Equal(t, NeverToken, v.Reason)
}

func TestVerdict_DownAfterRefusalsAndAfterErrorsOfSeveralClients(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused bool
		clients []uint64
		want    State
	}{
		{"three refusals", true, []uint64{1, 1, 1}, Down},
		{"two refusals", true, []uint64{1, 2}, Idle},
		{"errors of one client", false, []uint64{1, 1, 1, 1}, Idle},
		{"errors of two clients", false, []uint64{1, 2, 1}, Down},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, now := taught()
			for _, client := range test.clients {
				e.Fail(now, test.refused, client)
			}
			require.Equal(t, test.want, e.Verdict(now).State)
		})
	}
}

func TestVerdict_DownEndsWithAToken(t *testing.T) {
	e, now := taught()
	for range 3 {
		e.Fail(now, true, 0)
	}
	require.Equal(t, Down, e.Verdict(now).State)
	e.Begin(now, 1000, true).Token(now + second)
	require.Equal(t, Producing, e.Verdict(now+second).State)
}

// It was stuck, and has been down since: whether it is back is not known.
func TestVerdict_UnknownAfterStuckAndDown(t *testing.T) {
	e, now := taught()
	e.Begin(now, 1000, true)
	require.Equal(t, Stuck, e.Verdict(now+10*second).State)
	for range 3 {
		e.Fail(now+11*second, true, 0)
	}
	require.Equal(t, Down, e.Verdict(now+12*second).State)
	v := e.Verdict(now + 72*second)
	require.Equal(t, Unknown, v.State)
	require.Equal(t, NeverToken, v.Reason)
}

// A server at its limit of connections refuses more, while it serves others.
func TestVerdict_FailuresBesideTokensAreNotDown(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 1000, true)
	r.Token(now + second)
	for i := range time.Duration(10) {
		e.Fail(now+(i+2)*second, true, 0)
		r.Token(now + (i+2)*second + second/2)
		require.Equal(t, Producing, e.Verdict(now+(i+3)*second-1).State)
	}
}

func TestVerdict_AnswersEndFailures(t *testing.T) {
	e, now := taught()
	for range 10 {
		e.Fail(now, true, 0)
		e.Fail(now, true, 0)
		e.Answered()
	}
	require.Equal(t, Idle, e.Verdict(now).State)
	e.Fail(now, true, 0)
	e.Fail(now, true, 0)
	e.Fail(now, true, 0)
	require.Equal(t, Down, e.Verdict(now).State)
	e.Answered()
	v := e.Verdict(now)
	require.Equal(t, Unknown, v.State)
	require.Equal(t, NeverToken, v.Reason, "an answer is no token")
}

func TestVerdict_SlowIfMostMissTheirObjective(t *testing.T) {
	e, now := taught()
	e.Begin(now, 1000, true).Token(now + second)
	for i := range 5 {
		e.Judge(now+second, i < 3)
	}
	require.Equal(t, Slow, e.Verdict(now+2*second).State)
	for range 2 {
		e.Judge(now+2*second, false)
	}
	require.Equal(t, Producing, e.Verdict(now+2*second).State)
}

// More requests than the engine tracks: the largest prompt is not known, so silence is not judged.
func TestVerdict_NeverStuckBeyondTheLimit(t *testing.T) {
	e, now := taught()
	var last *Request
	for range maxOpen + 1 {
		last = e.Begin(now, 1000, true)
	}
	v := e.Verdict(now + time.Hour)
	require.Equal(t, Unknown, v.State)
	require.Equal(t, TooMany, v.Reason)
	require.Equal(t, 1, v.Untracked)
	last.End(now+time.Hour, Abandoned, Usage{})
	require.Equal(t, Stuck, e.Verdict(now+time.Hour).State)
}

func TestVerdict_MaxBoundLimitsWhatAPromptExplains(t *testing.T) {
	e, now := taught()
	e.Begin(now, 50_000_000, true)
	require.Equal(t, Producing, e.Verdict(now+119*second).State)
	require.Equal(t, Stuck, e.Verdict(now+121*second).State)
}

// An answer from a cache says nothing about a prefill: if it counted, the bound would fall to 5 s. The engine is never
// silent, and long after its first silences, only turns are known.
func TestVerdict_CachedPromptsNarrowNothing(t *testing.T) {
	for _, test := range []struct {
		usage Usage
		want  float64
	}{{Usage{Input: 25_000, Cached: 24_900}, 11}, {Usage{Input: 25_000}, 5.15}, {Usage{}, 5.15}} {
		e, now := taught()
		other := e.Begin(now, 1000, true)
		other.Token(now)
		for range 400 {
			now += 30 * time.Minute
			other.Token(now)
			r := e.Begin(now, 100_000, true)
			r.Token(now + second/20)
			r.End(now+second, Completed, test.usage)
		}
		bound, _ := e.bound(now, 100_000)
		require.InDelta(t, test.want, bound.Seconds(), 0.5, "%v", test.usage)
	}
}

// Requests that come while others are prefilled wait for these, too.
func TestVerdict_WaitsInAQueueAreNoPrefill(t *testing.T) {
	e, now := taught()
	other := e.Begin(now, 1000, true)
	for range 40 {
		now += 30 * second
		other.Token(now)
		var queue []*Request
		for i := range 4 {
			queue = append(queue, e.Begin(now+time.Duration(i), 100_000, true))
		}
		for i, r := range queue {
			at := now + time.Duration(i+1)*2*second
			other.Token(at - second)
			r.Token(at)
			r.End(at, Completed, Usage{})
		}
	}
	bound, _ := e.bound(now, 100_000)
	require.InDelta(t, 11, bound.Seconds(), 0.5)
}

// Each model is loaded for 18 s after 10 minutes without a request.
func TestVerdict_AfterASleepTheBoundHasTheTimeToWakeUp(t *testing.T) {
	e, now := taught()
	const bounded = 5 + 3*(2+18)
	for range 3 {
		now += 10 * time.Minute
		r := e.Begin(now, 100_000, true)
		v := e.Verdict(now + second)
		require.False(t, v.Learned)
		require.Equal(t, 2*time.Minute, v.Bound)
		now += 20 * second
		r.Token(now)
		require.InDelta(t, 11, e.Verdict(now).Bound.Seconds(), 0.5, "it is awake")
		r.End(now, Completed, Usage{})
	}
	now += 10 * time.Minute
	for range 3 { // clients that give up and ask again
		r := e.Begin(now, 100_000, true)
		v := e.Verdict(now)
		require.True(t, v.Learned)
		require.InDelta(t, bounded, v.Bound.Seconds(), 0.5)
		r.End(now+second, Abandoned, Usage{})
		now += 2 * second
	}
	e.Begin(now, 100_000, true)
	require.Equal(t, Producing, e.Verdict(now+(bounded-1)*second).State)
	require.Equal(t, Stuck, e.Verdict(now+(bounded+1)*second).State)
}

func TestVerdict_HasTheEvidence(t *testing.T) {
	e, now := taught()
	hangs, decodes := e.Begin(now, 1000, true), e.Begin(now, 2000, true)
	hangs.Token(now + second)
	for i := range 30 {
		decodes.Token(now + time.Duration(i+1)*second)
	}
	now += 30 * second
	e.Begin(now, 3000, false)
	e.Begin(now, 100_000, true)
	e.Begin(now, 4000, true)
	e.Begin(now, 1000, true).Unseen(now)
	v := e.Verdict(now + 2*second)
	require.Equal(t, [...]int{2, 1, 1, 1, 1, 6}, [...]int{v.Waiting, v.Decoding, v.Silent, v.Hung, v.Untracked, v.Open()})
	require.EqualValues(t, 100_000, v.Largest)
	require.Equal(t, now, v.LastToken)
	require.Equal(t, 2*second, v.Silence)
	require.EqualValues(t, 40, v.Prompts, "the very first one teaches nothing, and one was not of the largest prompt")
}

func TestVerdict_StuckInMidAnswerEndsWithItsNextToken(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 1000, true)
	r.Token(now)
	require.Equal(t, Stuck, e.Verdict(now+10*second).State)
	require.Equal(t, Stuck, e.Verdict(now+11*second).State)
	r.Token(now + 12*second)
	require.Equal(t, Producing, e.Verdict(now+13*second).State)
	require.Equal(t, now+13*second, e.Verdict(now+14*second).Since)
}

func TestVerdict_ATrialEndsWithATokenOfAStreamFromBefore(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 1000, true)
	r.Token(now)
	require.Equal(t, Stuck, e.Verdict(now+10*second).State)
	e.Try(now + 40*second)
	require.Equal(t, Trial, e.Verdict(now+41*second).Reason)
	r.Token(now + 42*second)
	v := e.Verdict(now + 43*second)
	require.Equal(t, Producing, v.State)
	require.Equal(t, 1, v.Decoding, "it is a witness again")
	require.Equal(t, Stuck, e.Verdict(now+50*second).State)
}

// What clients waited for in vain counts, without what the bound allows for an engine that works.
func TestVerdict_WaitsOfWhatIsNoWitnessAnyMoreAddUp(t *testing.T) {
	for name, leaves := range map[string]func(r *Request, now time.Duration){
		"abandoned":   func(r *Request, now time.Duration) { r.End(now, Abandoned, Usage{}) },
		"held":        func(r *Request, now time.Duration) { r.SetWitness(now, false) },
		"not visible": func(r *Request, now time.Duration) { r.Unseen(now) },
	} {
		t.Run(name, func(t *testing.T) {
			e, now := taught()
			leaves(e.Begin(now, 100_000, true), now+9*second)
			require.Zero(t, e.Verdict(now+10*second).Silence, "no witness is open")
			leaves(e.Begin(now+10*second, 100_000, true), now+11*second) // too short to count
			next := e.Begin(now+20*second, 100_000, true)
			v := e.Verdict(now + 21*second)
			require.InDelta(t, 1+9-5-2, v.Silence.Seconds(), 0.1)
			next.Token(now + 22*second)
			require.InDelta(t, 1, e.Verdict(now+23*second).Silence.Seconds(), 0.1, "a token ends it")
		})
	}
}

func TestVerdict_ALargePromptThatWasAbandonedMayStillBePrefilled(t *testing.T) {
	e, now := taught()
	e.Begin(now, 100_000, true).End(now+second, Abandoned, Usage{})
	e.Begin(now, 5000, true).End(now+second, Abandoned, Usage{})
	next := e.Begin(now+2*second, 1000, true)
	require.EqualValues(t, 100_000, e.Verdict(now+3*second).Largest)
	next.Token(now + 4*second)
	require.EqualValues(t, 1000, e.Verdict(now+5*second).Largest, "a token shows that it is not")
}

func TestVerdict_AnAnswerThatIsNotStreamedIsAToken(t *testing.T) {
	for outcome, want := range map[Outcome]State{Completed: Idle, Abandoned: Unknown, Broken: Unknown} {
		e := New(Settings{})
		e.Begin(second, 1000, false).End(2*second, outcome, Usage{})
		require.Equal(t, want, e.Verdict(3*second).State)
	}
	e := New(Settings{})
	e.Produced(second)
	v := e.Verdict(3 * second)
	require.Equal(t, Idle, v.State)
	require.Equal(t, second, v.LastToken)
}

func TestRestore_KnowsTheBoundAfterARestart(t *testing.T) {
	e, now := taught()
	want, _ := e.bound(now, 100_000)
	encoded := e.AppendBinary(nil, now)
	require.Less(t, len(encoded), 1024)
	restarted := New(Settings{})
	require.NoError(t, restarted.Restore(encoded, second))
	restarted.Begin(second, 1000, true).Token(2 * second)
	got, learned := restarted.bound(2*second, 100_000)
	require.True(t, learned)
	require.InDelta(t, want.Seconds(), got.Seconds(), 0.01)
}

func TestRestore_RejectsOtherVersionsAndMalformedState(t *testing.T) {
	encoded := New(Settings{}).AppendBinary(nil, 0)
	e := New(Settings{})
	require.ErrorContains(t, e.Restore(nil, 0), "version 2")
	require.ErrorContains(t, e.Restore(append([]byte{9}, encoded[1:]...), 0), "version 2")
	require.ErrorIs(t, e.Restore(encoded[:len(encoded)-1], 0), errMalformed)
	require.ErrorIs(t, e.Restore(append(encoded, 0), 0), errMalformed)
	for i := 17; i < 25; i++ {
		encoded[i] = 0xff // of a float64: not a number
	}
	require.ErrorIs(t, e.Restore(encoded, 0), errMalformed)
}

func TestToken_AllocatesNothing(t *testing.T) {
	e, now := taught()
	r := e.Begin(now, 1000, true)
	r.Token(now)
	require.Zero(t, testing.AllocsPerRun(1000, func() { now++; r.Token(now) }))
}
