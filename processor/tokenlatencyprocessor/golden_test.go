// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Each folder of testdata is a case: an input, the expected output, and optionally a config. The
// folder of another instrumentation's spans is named after their source.
//
// The files use text in place of bytes. The timeline "100 120x3 150r" has chunks at 100, 120 and 150 ms
// after the start, the second with three tokens, the third with reasoning. A sketch is written as its
// count, range and sum. Every number in expected.yaml is computed by hand from definitions.md, as the
// comment beside it shows, and never copied from the processor. Percentiles are the exact nearest rank.
//
// A case states the numbers that it is about; the case every_number states all.
func TestGolden(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "*", "input.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, input := range folders {
		folder := filepath.Dir(input)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			traces := golden.ReadTraces(t, input)
			expected := golden.ReadTraces(t, filepath.Join(folder, "expected.yaml"))

			for _, span := range spansOf(traces) {
				packTimeline(t, span.Attributes())
			}
			for _, detail := range []string{"full", "standard"} { // in this order: standard removes from expected
				cfg := readConfig(t, folder)
				cfg.Detail = detail
				sink := new(consumertest.TracesSink)
				p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(typ), cfg, sink)
				require.NoError(t, err)
				batch := ptrace.NewTraces()
				traces.CopyTo(batch)
				require.NoError(t, p.ConsumeTraces(t.Context(), batch))

				actual := sink.AllTraces()[0]
				require.Equal(t, expected.SpanCount(), actual.SpanCount())
				for i, span := range spansOf(actual) {
					if filepath.Base(folder) != everyNumber {
						removeOthers(spansOf(expected)[i].Attributes(), span.Attributes())
					}
					if detail == "standard" && attributes.IsAnnotated(span) && !attributes.IsAnnotated(spansOf(traces)[i]) {
						removeFullOnly(spansOf(expected)[i].Attributes())
					}
					describeBytes(t, span.Attributes())
					settle(spansOf(expected)[i], span)
				}
				golden.RequireEqual(t, expected, actual, "detail: "+detail)
			}
		})
	}
}

// everyNumber is the case that states all numbers.
const everyNumber = "every_number"

// inEveryCase are the numbers that a case checks even if it does not state them: that they are missing is what many cases are about.
// A number that is not among them is checked where it is stated, so that a new one needs no edit of cases that are about others.
var inEveryCase = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range [...]string{
		"time_to_first_token", "time_to_first_output_token", "time_per_output_token", "request.duration", "output_token_rate", "request_token_rate",
		"queue.duration", "prefill.duration", "decode.duration", "network.duration", "decode.share", "trace.time_to_answer",
		"stall.duration", "stall.count", "fluidity_index", "chunk.count", "token_count", "token_count.mismatch", "clock.anomalies",
		"cached_input.share", "speculative.accepted_tokens", "speculative.draft_tokens",
	} {
		all[names.Prefix+name] = true
	}
	for _, statistic := range [...]string{".mean", ".p50", ".p95", ".p99", ".max", ".sketch"} {
		all["tokenpulse.inter_token_latency"+statistic], all["tokenpulse.inter_chunk_latency"+statistic] = true, true
	}
	return all
}()

// removeOthers removes the numbers that a case is not about, and their entries in the list of estimates. Numbers of services
// have attributes of the conventions; a case states all of them.
func removeOthers(expected, actual pcommon.Map) {
	for id := range numbers.Count {
		name := id.Attribute()
		if _, stated := expected.Get(name); stated || inEveryCase[name] || !strings.HasPrefix(name, names.Prefix) || !actual.Remove(name) {
			continue
		}
		if estimated, ok := attributes.Listed(actual, names.Estimated); ok {
			estimated.RemoveIf(func(v pcommon.Value) bool { return v.Str() == id.Name() })
			attributes.RemoveEmpty(actual, names.Estimated)
		}
	}
	if stated, ok := attributes.Listed(expected, names.Unmeasured); !ok || !slices.ContainsFunc(stated.AsRaw(), isOfChunkTokens) {
		removeChunkTokens(actual)
	}
}

// isOfChunkTokens reports whether an entry of names.Unmeasured is that of the tokens of chunks.
func isOfChunkTokens(entry any) bool { return strings.HasPrefix(entry.(string), "tokens_per_chunk=") }

func removeChunkTokens(of pcommon.Map) {
	if reasons, ok := attributes.Listed(of, names.Unmeasured); ok {
		reasons.RemoveIf(func(v pcommon.Value) bool { return isOfChunkTokens(v.Str()) })
		attributes.RemoveEmpty(of, names.Unmeasured)
	}
}

// One case states each number, its value computed by hand.
func TestGolden_OneCaseStatesEveryNumber(t *testing.T) {
	expected := golden.ReadTraces(t, filepath.Join("testdata", everyNumber, "expected.yaml"))
	for id := range numbers.Count {
		stated := slices.ContainsFunc(spansOf(expected), func(span ptrace.Span) bool {
			_, ok := span.Attributes().Get(id.Attribute())
			return ok
		})
		require.True(t, stated, "state %s, with its arithmetic as a comment, in testdata/%s/expected.yaml", id.Attribute(), everyNumber)
	}
}

// removeFullOnly removes what the documentation says is written with `detail: full` only.
func removeFullOnly(attributes pcommon.Map) {
	removeChunkTokens(attributes)
	short := []string{
		"decode.share", "output_token_rate", "request_token_rate", "prefill_token_rate", "inter_token_latency.mean", "inter_chunk_latency",
		"inter_chunk_latency.mean", "inter_chunk_latency.p50", "inter_chunk_latency.p95", "inter_chunk_latency.p99",
		"inter_chunk_latency.max", "inter_chunk_latency.sketch", "tokens_per_chunk.sketch",
		"time_per_token.from_0", "time_per_token.from_10", "time_per_token.from_100", "time_per_token.from_1000", "speculative.accepted_tokens", "speculative.draft_tokens",
		"inter_audio_chunk_latency.mean", "inter_audio_chunk_latency.p50", "inter_audio_chunk_latency.p95", "inter_audio_chunk_latency.p99",
	}
	attributes.RemoveIf(func(key string, _ pcommon.Value) bool {
		name, ours := strings.CutPrefix(key, "tokenpulse.")
		return ours && slices.Contains(short, name)
	})
	estimated, ok := attributes.Get("tokenpulse.estimated")
	if !ok {
		return
	}
	estimated.Slice().RemoveIf(func(v pcommon.Value) bool { return slices.Contains(short, v.Str()) })
	if estimated.Slice().Len() == 0 {
		attributes.Remove("tokenpulse.estimated")
	}
}

// spansOf returns all spans of all scopes.
func spansOf(traces ptrace.Traces) (spans []ptrace.Span) {
	for _, resourceSpans := range traces.ResourceSpans().All() {
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				spans = append(spans, span)
			}
		}
	}
	return spans
}

// Every reader has a golden case, and every folder is named after the source of its spans.
func TestGolden_CoversEverySource(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "*", "expected.yaml"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, file := range folders {
		expected := golden.ReadTraces(t, file)
		for _, span := range spansOf(expected) {
			name, ok := span.Attributes().Get(names.Source)
			if !ok {
				continue
			}
			seen[name.Str()] = true
			folder := filepath.Base(filepath.Dir(file))
			if name.Str() != names.SourceTokenStream && folder != everyNumber {
				require.True(t, strings.HasPrefix(folder, name.Str()), "%s has a span of %s", file, name.Str())
			}
		}
	}
	require.ElementsMatch(t, source.Names(), slices.Collect(maps.Keys(seen)), "a reader without a golden case, or a case without its reader")
}

func readConfig(t *testing.T, folder string) *Config {
	t.Helper()
	cfg := annotate.DefaultConfig()
	file := filepath.Join(folder, "config.yaml")
	if _, err := os.Stat(file); err != nil {
		return cfg
	}
	conf, err := confmaptest.LoadConf(file)
	require.NoError(t, err)
	require.NoError(t, conf.Unmarshal(cfg))
	return cfg
}

var channelLetters = map[byte]timeline.Channel{'r': timeline.Reasoning, 't': timeline.ToolCall, 'a': timeline.Audio}

// packTimeline encodes a timeline given as text. It keeps a text that begins with "bad".
func packTimeline(tb testing.TB, attributes pcommon.Map) {
	tb.Helper()
	words, ok := attributes.Get(names.Timeline)
	if !ok || strings.HasPrefix(words.Str(), "bad") {
		return
	}
	var line timeline.Timeline
	for word := range strings.FieldsSeq(words.Str()) {
		channel, ok := channelLetters[word[len(word)-1]]
		if ok {
			word = word[:len(word)-1]
		}
		at, tokens, bundled := strings.Cut(word, "x")
		milliseconds, err := strconv.ParseInt(at, 10, 64)
		require.NoError(tb, err)
		n := 1
		if bundled {
			n, err = strconv.Atoi(tokens)
			require.NoError(tb, err)
		}
		line.Append(milliseconds*1_000_000, uint32(n), channel)
	}
	words.SetEmptyBytes().FromRaw(line.AppendBinary(nil, 0))
}

// describeBytes replaces the bytes of a span by the text that golden files use.
func describeBytes(t *testing.T, attributes pcommon.Map) {
	t.Helper()
	for key, v := range attributes.All() {
		if v.Type() != pcommon.ValueTypeBytes {
			continue
		}
		encoded := v.Bytes().AsRaw()
		if key != names.Timeline {
			var s sketch.Sketch
			require.NoError(t, s.MergeBinary(encoded))
			v.SetStr(fmt.Sprintf("%d samples, %.3f..%.3f, sum %.3f", s.Count(), s.Min(), s.Max(), s.Sum()))
			continue
		}
		walk, err := timeline.Decode(encoded)
		require.NoError(t, err)
		var words []string
		for walk.Next() {
			word := strconv.FormatInt(walk.Offset().Milliseconds(), 10)
			if walk.Tokens() > 1 {
				word += fmt.Sprintf("x%d", walk.Tokens())
			}
			words = append(words, word)
		}
		require.NoError(t, walk.Err())
		v.SetStr(strings.Join(words, " "))
	}
}

// settle replaces actual numbers by the expected ones if they are close enough: within 1% for a
// percentile, which is the promised accuracy, and within a rounding error for all others. Seconds
// are rounded to the nanosecond.
func settle(expected, actual ptrace.Span) {
	for key, v := range actual.Attributes().All() {
		want, ok := expected.Attributes().Get(key)
		if !ok || v.Type() != pcommon.ValueTypeDouble {
			continue
		}
		tolerance := 0.5e-9 + 1e-16
		switch {
		case slices.Contains([]string{"tokenpulse.decode.share", "tokenpulse.fluidity_index", "tokenpulse.output_token_rate", "tokenpulse.request_token_rate", "tokenpulse.prefill_token_rate"}, key):
			tolerance = 1e-12 * want.Double()
		case strings.Contains(key, ".p") && key != "tokenpulse.prefill.duration":
			tolerance = 0.01 * want.Double()
		}
		if math.Abs(v.Double()-want.Double()) <= tolerance {
			v.SetDouble(want.Double())
		}
	}
}
