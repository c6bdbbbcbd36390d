// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// speech returns chunks of audio, as contents does of text.
func speech(milliseconds ...float64) []chunk {
	var chunks []chunk
	for _, at := range milliseconds {
		chunks = append(chunks, chunk{at, 7, timeline.Audio}) // the tokens are ignored
	}
	return chunks
}

// Audio between the tokens changes no number of the text, and text no number of the audio.
func TestAudio_HasAClockOfItsOwn(t *testing.T) {
	text := contents(100, 160, 190, 400)
	mixed := []chunk{text[0], speech(150)[0], text[1], speech(170)[0], text[2], text[3], speech(470)[0], speech(900)[0]}
	request := Observed{Duration: 950 * ms, OutputTokens: optional.Of[int64](104), AudioTokens: optional.Of[int64](100), AudioDuration: optional.Of(1500 * ms)}
	l := analyze(t, standard, request, mixed)
	alone := analyze(t, standard, Observed{Duration: 950 * ms, OutputTokens: optional.Of[int64](4)}, text)
	for id := range numbers.Count {
		switch id {
		case numbers.TimeToFirstAudio, numbers.RealTimeFactor, numbers.AudioDuration, numbers.AudioChunkCount,
			numbers.InterAudioMean, numbers.InterAudioP50, numbers.InterAudioP95, numbers.InterAudioP99, numbers.InterAudioMax:
			require.False(t, alone.Measures[id].Known, id.Attribute())
		default:
			require.Equal(t, alone.Measures[id], l.Measures[id], id.Attribute())
		}
	}
	for id, value := range (want{
		numbers.TimePerOutputToken: 0.1, // (400-100)/(4-1)
		numbers.TimeToFirstAudio:   0.15, numbers.AudioChunkCount: 4, numbers.AudioDuration: 1.5,
		numbers.RealTimeFactor: 2,    // 1.5/(0.900-0.150)
		numbers.InterAudioMean: 0.25, // gaps of 20, 300 and 430 ms
		numbers.InterAudioMax:  0.43,
	}) {
		require.InDelta(t, value, l.Measures[id].Value, 1e-9, id.Attribute())
	}
	require.EqualValues(t, 3, l.AudioGaps.Count())
	require.EqualValues(t, 3, l.TokenGaps.Count())
}

func TestAudio_WithoutTextIsASuccessWithoutTokens(t *testing.T) {
	for _, request := range []Observed{
		{Duration: time.Second},
		{Duration: time.Second, OutputTokens: optional.Of[int64](40), AudioTokens: optional.Of[int64](40)},
	} {
		l := analyze(t, standard, request, speech(200, 300))
		require.Equal(t, names.OutcomeSuccess, l.Outcome)
		require.Equal(t, NoToken, l.Absences[0])
		require.Equal(t, NoToken, l.Absences[1])
		require.False(t, l.Measures[numbers.TimeToFirstToken].Known)
		require.Equal(t, Measure{Value: 0.2, Known: true}, l.Measures[numbers.TimeToFirstAudio])
		require.False(t, l.Measures[numbers.RealTimeFactor].Known, "the length is unknown")
	}
}

// The clock of the audio may go back, as that of tokens may.
func TestAudio_LeavesOutANegativeGap(t *testing.T) {
	l := analyze(t, standard, Observed{Duration: time.Second}, speech(200, 300, 250, 400))
	require.EqualValues(t, 1, l.Count(numbers.ClockAnomalies))
	require.EqualValues(t, 1, l.Rejected[Negative])
	require.EqualValues(t, 2, l.AudioGaps.Count())
	require.InDelta(t, 0.125, l.Measures[numbers.InterAudioMean].Value, 1e-9) // 100 and 150 ms
}

// A user who interrupts did not give up: the time since the last token is playback, not a stall.
func TestInterrupted_IsCancelledWithoutAStall(t *testing.T) {
	chunks := append(contents(100, 120), speech(130)...)
	for _, reported := range []string{"", names.OutcomeSuccess, names.OutcomeCancelled} {
		l := analyze(t, standard, Observed{Duration: 5 * time.Second, Outcome: reported, Interrupted: true}, chunks)
		require.Equal(t, names.OutcomeCancelled, l.Outcome)
		require.False(t, l.StalledAtEnd)
		require.Zero(t, l.Count(numbers.StallCount))
	}
	l := analyze(t, standard, Observed{Duration: 5 * time.Second, Outcome: names.OutcomeError, Interrupted: true}, chunks)
	require.Equal(t, names.OutcomeError, l.Outcome, "the transport failed")
}

// A client that disconnects while audio arrives did not wait for a token.
func TestAudio_CancelledWhileItArrivesIsNoStall(t *testing.T) {
	for name, test := range map[string]struct {
		speech []chunk
		want   int64
	}{
		"while it arrives":     {speech(600, 1200, 1800), 0},
		"long after the audio": {speech(600, 1200), 1},
	} {
		t.Run(name, func(t *testing.T) {
			options := standard
			options.Moments = true
			l := analyze(t, options, Observed{Duration: 2 * time.Second, Outcome: names.OutcomeCancelled}, append(contents(100, 120), test.speech...))
			require.Equal(t, test.want == 1, l.StalledAtEnd)
			require.Equal(t, test.want, l.Count(numbers.StallCount))
			if test.want == 1 {
				require.InDelta(t, 0.8, l.Measures[numbers.StallDuration].Value, 1e-9)
				require.Equal(t, []Stall{{1200 * ms, 800 * ms, 2}}, l.Moments.Stalls)
			}
		})
	}
}

// Audio outside of the request is a clock anomaly as tokens are, whose series would otherwise reject gaps longer than the request.
func TestAudio_OutsideOfTheRequestIsAClockAnomaly(t *testing.T) {
	for name, test := range map[string]struct {
		chunks []chunk
		want   int64
	}{
		"after the end":              {append(contents(100), speech(200, 900, 1300)...), 1},
		"before the start":           {append(speech(-50), append(contents(100), speech(200)...)...), 1},
		"alone, after the end":       {speech(200, 1300), 1},
		"the last token likewise":    {append(speech(200, 1200), contents(1300)...), 1},
		"within it":                  {append(contents(100), speech(200, 1000)...), 0},
		"no token, within it":        {speech(0, 1000), 0},
		"on both sides of the whole": {speech(-50, 1300), 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := analyze(t, standard, Observed{Duration: time.Second}, test.chunks)
			require.Equal(t, test.want, l.Count(numbers.ClockAnomalies))
		})
	}
}

// At the limit of a stream's chunks, the dropped ones may be audio: they add no tokens, and the end of the audio is unknown.
func TestAudio_DroppedChunksAreNoTokens(t *testing.T) {
	request := Observed{Duration: 9 * time.Second, LastChunksDropped: 1000, AudioDuration: optional.Of(60 * time.Second)}
	l := analyze(t, standard, request, append(contents(100, 120), speech(130, 150)...))
	require.EqualValues(t, 2, l.Count(numbers.TokenCount))
	require.EqualValues(t, 2, l.Count(numbers.ChunkCount))
	require.False(t, l.Measures[numbers.RealTimeFactor].Known)
	require.Equal(t, Measure{Value: 0.02, Known: true, Estimated: true}, l.Measures[numbers.InterAudioMax])
	alone := analyze(t, standard, request, speech(130, 150))
	require.False(t, alone.Measures[numbers.TokenCount].Known)
	require.Equal(t, names.OutcomeSuccess, alone.Outcome)
}

// A gap between tokens is a stall only if the user got nothing during it, not even audio.
func TestAudio_BetweenTokensIsNoStall(t *testing.T) {
	options := standard
	options.Moments = true
	text := contents(100, 1100, 2100, 3100, 3200, 4200) // gaps of a second: stalls, but for audio
	spoken := speech(50, 600, 1100, 2500, 4200)
	chunks := []chunk{spoken[0], text[0], spoken[1], text[1], spoken[2], text[2], spoken[3], text[3], text[4], text[5], spoken[4]}
	l := analyze(t, options, Observed{Duration: 5 * time.Second}, chunks)
	require.EqualValues(t, 2, l.Count(numbers.StallCount))
	require.InDelta(t, 2, l.Measures[numbers.StallDuration].Value, 1e-9)
	require.Equal(t, []Stall{{1100 * ms, time.Second, 2}, {3200 * ms, time.Second, 5}}, l.Moments.Stalls)
	require.InDelta(t, 1, l.Measures[numbers.InterTokenMax].Value, 1e-9, "the gaps themselves stay")
}
