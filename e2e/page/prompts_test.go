// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// promptBucket holds the numbers of prompts with similar lengths, by their names in the API, in seconds.
type promptBucket map[string][]float64

// recountPrompts computes TTFT and TPOT of the streams of recordings, from the lines, by the length of the bucket's
// longest prompt.
func recountPrompts(t *testing.T, files ...string) map[int]promptBucket {
	t.Helper()
	type usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Cached int `json:"cached_input_tokens"`
	}
	buckets := map[int]promptBucket{}
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		type stream struct{ start, first, last int64 }
		streams := map[string]*stream{}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var line struct {
				Event  string
				Stream string `json:"stream_id"`
				Time   int64  `json:"time_unix_nano,string"`
				Usage  usage
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
			switch s := streams[line.Stream]; line.Event {
			case "start":
				streams[line.Stream] = &stream{start: line.Time}
			case "chunk":
				if s.first == 0 {
					s.first = line.Time
				}
				s.last = line.Time
			case "end":
				if line.Usage.Input == 0 { // cancelled or failed
					continue
				}
				longest := 1 << max(7, bits.Len(uint(line.Usage.Input-1)))
				bucket := buckets[longest]
				if bucket == nil {
					bucket = promptBucket{}
					buckets[longest] = bucket
				}
				cached := "uncached"
				if line.Usage.Cached > 0 {
					cached = "cached"
				}
				bucket[cached] = append(bucket[cached], float64(s.first-s.start)/1e9)
				bucket["time_per_output_token"] = append(bucket["time_per_output_token"], float64(s.last-s.first)/1e9/float64(line.Usage.Output-1))
			}
		}
		require.NoError(t, lines.Err())
	}
	for _, bucket := range buckets {
		for _, values := range bucket {
			slices.Sort(values)
		}
	}
	return buckets
}

// Real and synthetic requests: TTFT and TPOT by prompt length are those of a recount, in the API and on the page, where the
// output token rate stands beside the TPOT.
func TestLivePage_SpeedByPromptLengthIsThatOfARecount(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	files := []string{testenv.UnzipRecording(t), collector.DemoRecording(t)}
	for _, file := range files {
		collector.Replay(t, c, file)
	}
	want := recountPrompts(t, files...)
	require.Greater(t, len(want), 4)

	var answer struct{ Buckets []map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(collector.Get(t, c.PageURL("api/v1/prompts?vantage=all"), "application/json"), &answer))
	require.Len(t, answer.Buckets, len(want))
	for i, longest := range slices.Sorted(maps.Keys(want)) {
		got := answer.Buckets[i]
		require.Equal(t, strconv.Itoa(longest), string(got["to_tokens"]))
		for _, name := range []string{"uncached", "cached", "time_per_output_token"} {
			about := fmt.Sprintf("%s of prompts up to %d", name, longest)
			values := want[longest][name]
			if values == nil {
				require.Equal(t, "null", string(got[name]), about)
				continue
			}
			var summary map[string]float64
			require.NoError(t, json.Unmarshal(got[name], &summary))
			require.Len(t, values, int(summary["count"]), about)
			require.InEpsilon(t, reference.Mean(values), summary["mean"], 1e-4, about) // chunks are timed in microseconds
			for percentile, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
				require.InEpsilon(t, reference.NearestRank(values, q), summary[percentile], reference.SketchError, "%s of %s", percentile, about)
			}
		}
	}

	p := openTab(t, c.PageURL("?vantage=all"))
	p.waitUntilLoaded()
	p.show("prompts")
	requests := 0
	for _, bucket := range want {
		requests += len(bucket["time_per_output_token"])
	}
	p.waitUntil(fmt.Sprintf(`[...document.querySelectorAll('#prompts .caption')].every(caption => caption.textContent === '%d requests')`, requests))
	p.screenshot("prompts")
	p.do(script(`[...document.querySelectorAll('#prompts .plot')][1].focus()`))
	p.press(keyHome)
	p.waitUntil(`[...document.querySelectorAll('#prompts .caption')].every(caption => caption.textContent.startsWith('129 to 256 tokens: '))`)
	shown := p.text(`[...document.querySelectorAll('#prompts .caption')][1].textContent`)
	values := want[256]["time_per_output_token"]
	numbers := regexp.MustCompile(`^129 to 256 tokens: p50 ([\d.]+) ms · ([\d.]+) tok/s, p95 ([\d.]+) ms · ([\d.]+) tok/s \((\d+)\)$`).FindStringSubmatch(shown)
	require.Len(t, numbers, 6, shown)
	median, slow := reference.NearestRank(values, 0.5), reference.NearestRank(values, 0.95)
	for i, want := range []float64{1000 * median, 1 / median, 1000 * slow, 1 / slow, float64(len(values))} {
		got, err := strconv.ParseFloat(numbers[i+1], 64)
		require.NoError(t, err)
		require.InEpsilon(t, want, got, reference.SketchError+rounding, shown)
	}
}
