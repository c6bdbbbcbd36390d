// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// audio is the result of one walk over the chunks of audio, which have a clock of their own.
type audio struct {
	gaps        sketch.Sketch // seconds; reuses memory
	total       time.Duration // of the gaps
	chunks      int64
	first, last time.Duration // times of the first and last chunk
}

// read walks the chunks of audio. Gaps outside [0, limit] are left out and counted in l. The walk is one that was split, so it
// has no errors.
func (a *audio) read(walk timeline.Walk, limit time.Duration, l *Latency) {
	a.gaps.Reset()
	*a = audio{gaps: a.gaps, chunks: int64(walk.Left())}
	if !walk.Next() {
		return
	}
	a.first, a.last = walk.Offset(), walk.Offset()
	for walk.Next() {
		gap := walk.Offset() - a.last
		a.last = walk.Offset()
		if l.accepts(gap, limit) {
			a.gaps.Add(seconds(gap), 1)
			a.total += gap
		} else if gap < 0 {
			l.addClockAnomaly()
		}
	}
}

// leaveOutAudio makes the output tokens those of text.
func (d *derivation) leaveOutAudio() {
	if output := &d.request.OutputTokens; output.Known && d.request.AudioTokens.Known {
		output.Value = WithoutAudio(output.Value, d.request.AudioTokens.Value)
	}
}

// WithoutAudio returns the output tokens that are text. Services report audio tokens as a part of all.
func WithoutAudio[T int64 | float64](output, audio T) T {
	if 0 < audio && audio <= output {
		return output - audio
	}
	return output
}

// spoken sets the numbers of the audio.
func (d *derivation) spoken() {
	a, m := d.audio, &d.latency.Measures
	if d.request.AudioDuration.Known && d.request.AudioDuration.Value > 0 {
		m[numbers.AudioDuration] = Measure{Value: seconds(d.request.AudioDuration.Value), Known: true}
	}
	if a.chunks == 0 {
		return
	}
	d.latency.setCount(numbers.AudioChunkCount, a.chunks)
	if !d.request.StartUnknown {
		d.set(numbers.TimeToFirstAudio, a.first, false)
	}
	if pace := a.last - a.first; pace > 0 && d.dropped() == 0 && m[numbers.AudioDuration].Known {
		m[numbers.RealTimeFactor] = Measure{Value: m[numbers.AudioDuration].Value / seconds(pace), Known: true}
	}
	d.latency.setGaps(numbers.InterAudioMean, summarize(&a.gaps, float64(a.total), d.dropped() > 0, d.options.percentiles()))
}
