// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
)

// The query of docs/audio.md answers for speech with its settings, whatever form of histograms Prometheus stores. A turn that its
// user interrupts is not in the percentile, and breaches no SLO.
func TestAudioPage_QueryAnswers(t *testing.T) {
	t.Parallel()
	page := markdown.Read(t, "docs/audio.md")
	block := func(language string) string {
		_, text, found := strings.Cut(page, "```"+language+"\n")
		require.True(t, found, language)
		text, _, _ = strings.Cut(text, "```")
		return text
	}
	query := block("promql")
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "audio.yaml", block("yaml")))
	recorded, begin, turns := newRecording(query, "tokenpulse_requests_total"), time.Now().Add(-time.Hour).Truncate(time.Second), 0
	for minute := range 3 {
		var events strings.Builder
		for range 20 {
			turns++
			for name, spoken := range map[string]struct {
				first time.Duration
				end   string
			}{"voice": {400 * time.Millisecond, ""}, "interrupted": {4 * time.Second, `,"interrupted":true`}} {
				write := tokenevents.EventsOf(&events, fmt.Sprint(name, turns), begin.Add(time.Duration(minute)*time.Minute))
				write("start", 0, `,"attributes":{"gen_ai.request.model":"tts"}`)
				for i := range 3 {
					write("chunk", spoken.first+time.Duration(i)*1500*time.Millisecond, `,"channel":"audio"`)
				}
				write("end", 9*time.Second, spoken.end)
			}
		}
		c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
		recorded.add(exposition.WaitForRequests(t, c, 2*turns), begin.Add(time.Duration(minute+1)*time.Minute))
	}
	families := exposition.Scrape(t, c)
	for verdict, want := range map[string]float64{
		"voice-start good": 60, "voice-start bad": 0, "voice-start not_eligible": 60,
		"voice-gap good": 0, "voice-gap bad": 60, "voice-gap not_eligible": 60,
	} {
		slo, of, _ := strings.Cut(verdict, " ")
		require.InDelta(t, want, exposition.SumOf(t, families, "tokenpulse_slo_requests_total", map[string]string{"slo": slo, "verdict": of}), 0, verdict)
	}
	for name, setup := range installedSetups(t) {
		t.Run(name, func(t *testing.T) {
			p := recorded.replay(t, setup)
			got := answersAt(t, p, query, recorded.last).of("server")
			require.Len(t, got, 1)
			p.RequireQuantile(t, "tokenpulse_time_to_first_audio_seconds", promserver.Exactly(0.4), got["gen_ai_request_model=tts"])
		})
	}
}
