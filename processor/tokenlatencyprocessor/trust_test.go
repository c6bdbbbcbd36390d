// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadatatest"
)

// documented is an attribute in docs/attributes.md.
type documented struct{ Key, Type string }

// ourAttributes lists every attribute under our prefix that a span can have, and traceAttributes
// those of a root span.
var (
	traceAttributes = documentedIn("trace")
	ourAttributes   = slices.Concat(documentedIn("span"), documentedIn("full"), documentedIn("carried"), documentedIn("slo"), traceAttributes)
)

// receiversToo lists those that the page says token_stream writes besides the processor, and
// carriedByOthers those in the table of what spans carry that token_stream or an SDK writes.
var (
	receiversToo    = []string{names.Vantage, names.Outcome, "tokenpulse.queue.duration", "tokenpulse.audio.duration"}
	carriedByOthers = func() (keys []string) {
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| [^|]+ \\| (?:token_stream|any SDK)").FindAllStringSubmatch(pageTable("carried"), -1) {
			keys = append(keys, row[1])
		}
		return keys
	}()
)

// documentedIn returns the rows of a table in docs/attributes.md.
func documentedIn(table string) (rows []documented) {
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| ([^ ,|]+)").FindAllStringSubmatch(pageTable(table), -1) {
		for key := range strings.SplitSeq(row[1], ", ") {
			rows = append(rows, documented{strings.Trim(key, "`"), row[2]})
		}
	}
	return rows
}

// pageTable returns the text of a table in docs/attributes.md.
func pageTable(table string) string {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "attributes.md"))
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(page), "<!-- "+table+":begin -->")
	text, _, _ := strings.Cut(after, "<!-- "+table+":end -->")
	return text
}

// derivedNames are the attributes that the processor replaces or removes, whatever the span carries.
var derivedNames = func() map[string]bool {
	derived := map[string]bool{}
	for _, a := range slices.Concat(documentedIn("span"), documentedIn("full")) {
		derived[a.Key] = true
	}
	for _, either := range []string{names.Source, names.Vantage, names.Outcome} {
		delete(derived, either)
	}
	return derived
}()

// forge sets an attribute to a valid value that the processor would not derive.
func forge(attributes pcommon.Map, a documented) {
	switch a.Type {
	case "string":
		attributes.PutStr(a.Key, "cancelled")
	case "int":
		attributes.PutInt(a.Key, 1_000_000)
	case "double":
		attributes.PutDouble(a.Key, 1e6)
	case "boolean":
		attributes.PutBool(a.Key, true)
	case "bytes":
		var s sketch.Sketch
		s.Add(1e6, 1_000_000)
		attributes.PutEmptyBytes(a.Key).FromRaw(s.AppendBinary(nil))
	case "int[]":
		attributes.PutEmptySlice(a.Key).AppendEmpty().SetInt(1_000_000)
	case "string[]":
		attributes.PutEmptySlice(a.Key).AppendEmpty().SetStr("ttft")
	case "double[]":
		attributes.PutEmptySlice(a.Key).AppendEmpty().SetDouble(1e6)
	default:
		panic(a.Type)
	}
}

// untrusting returns a configuration for an edge, with everything on that reads annotations.
func untrusting(tb testing.TB) *Config {
	tb.Helper()
	cfg := judging(tb, map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "1ms"})
	cfg.TrustAnnotations = false
	cfg.Phases, cfg.Join, cfg.RollUp = true, true, true
	return cfg
}

// inputs are the attributes under our prefix that the processor reads, by whether it reads them from
// spans without a timeline, too.
var inputs = map[string]bool{
	names.Vantage: true, names.Timeline: false, names.Outcome: false, "tokenpulse.queue.duration": false,
	names.ChunksDropped: false, names.Frames: false, names.Cut: false,
	names.ChunkOffsets: false, names.ChunkTokens: false, names.ChunkChannels: false,
	names.Interrupted: false, "tokenpulse.audio.duration": false,
}

// timelines are the attributes of which each makes a span one with a timeline.
var timelines = []string{names.Timeline, names.ChunkOffsets}

func removeTimelines(attributes pcommon.Map) {
	for _, name := range timelines {
		attributes.Remove(name)
	}
}

// tapInputs are those that only spans of token_tap may carry.
var tapInputs = []string{
	names.Source, "tokenpulse.prefill.duration", "tokenpulse.decode.duration", "tokenpulse.network.duration", "tokenpulse.speculative.accepted_tokens",
	"tokenpulse.speculative.draft_tokens", names.StartUnseen, names.Unparsed, names.Untimed, names.Uncounted,
}

func TestTrust_KeepsWhatTokenTapWrites(t *testing.T) {
	for _, a := range ourAttributes {
		if a.Key == names.Source || a.Key == names.Timeline {
			continue
		}
		own := pcommon.NewMap()
		own.PutEmptyBytes(names.Timeline)
		own.PutStr(names.Source, names.SourceTokenTap)
		forge(own, a)
		annotate.RemoveAnnotations(own)
		_, stays := own.Get(a.Key)
		_, input := inputs[a.Key]
		require.Equal(t, input || slices.Contains(tapInputs, a.Key), stays, a.Key)
		require.Equal(t, names.SourceTokenTap, attributes.Text(own, names.Source))
	}
}

// Each attribute is an input, or the processor removes it.
func TestTrust_RemovesEveryAttributeButInputs(t *testing.T) {
	for _, a := range ourAttributes {
		onAnySpan, input := inputs[a.Key]
		// The mark of a receiver that publishes series is for token_sli only.
		written := slices.Contains(receiversToo, a.Key) || slices.Contains(carriedByOthers, a.Key)
		require.Equal(t, input, written && a.Key != names.Aggregated, a.Key)
		for _, carried := range append([]string{""}, timelines...) {
			attributes := pcommon.NewMap()
			attributes.PutStr("mine", "kept")
			forge(attributes, a)
			if carried != "" {
				attributes.PutEmpty(carried)
			}
			removed := annotate.RemoveAnnotations(attributes)
			_, stays := attributes.Get(a.Key)
			expected := input && carried != "" || onAnySpan || slices.Contains(timelines, a.Key)
			require.Equal(t, expected, stays, "%s, with the timeline %q", a.Key, carried)
			require.Equal(t, !stays, removed == 1, a.Key)
			_, others := attributes.Get("mine")
			require.True(t, others)
		}
	}
	for _, unknown := range []string{"tokenpulse.slo.name", "tokenpulse.of.a.later.release"} {
		attributes := pcommon.NewMap()
		attributes.PutBool(unknown, true)
		require.EqualValues(t, 1, annotate.RemoveAnnotations(attributes))
	}
}

// What a sender forges changes nothing, on any kind of span.
func TestTrust_ForgedSpansGiveTheSameAsHonestOnes(t *testing.T) {
	honest, spans := newSpans()
	shapes := []func() ptrace.Span{
		spans.AppendEmpty, // not a model call
		func() ptrace.Span { return addStream(spans, 100, 120) },
		func() ptrace.Span { return addStream(spans) },
		func() ptrace.Span {
			span := spans.AppendEmpty()
			span.Attributes().PutStr(names.GenAIOperationName, "chat")
			span.Attributes().PutDouble(names.GenAITimeToFirstChunk, 0.1)
			span.SetStartTimestamp(epoch)
			span.SetEndTimestamp(epoch + pcommon.Timestamp(time.Second))
			return span
		},
		func() ptrace.Span {
			span := addStream(spans, 100)
			span.Attributes().PutStr(names.Timeline, "not bytes")
			return span
		},
	}
	for i, shape := range shapes {
		span := shape()
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetTraceID(pcommon.TraceID{byte(i + 1)})
	}
	forged := ptrace.NewTraces()
	honest.CopyTo(forged)
	for _, span := range spansOf(forged) {
		_, stream := span.Attributes().Get(names.Timeline)
		for _, a := range ourAttributes {
			_, isInput := inputs[a.Key]
			input := isInput && (stream || a.Key == names.Vantage || slices.Contains(timelines, a.Key))
			if !input {
				forge(span.Attributes(), a)
			}
		}
	}
	cfg := untrusting(t)
	cfg.SLOs = append(cfg.SLOs, judging(t, map[string]any{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "1ms"}).SLOs...)
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, p.ConsumeTraces(t.Context(), honest))
	require.NoError(t, p.ConsumeTraces(t.Context(), forged))
	expected, actual := spansOf(sink.AllTraces()[0]), spansOf(sink.AllTraces()[1])
	require.Len(t, actual, len(expected))
	for i := range expected {
		require.Equal(t, expected[i].Attributes().AsRaw(), actual[i].Attributes().AsRaw(), "span %d", i)
	}
	require.Greater(t, len(expected), len(shapes), "phases are added")
}

// token_sli counts only the requests that the processor derived.
func TestTrust_ForgedRequestsDoNotCount(t *testing.T) {
	for _, trust := range []bool{true, false} {
		traces, spans := newSpans()
		for _, timeline := range []string{"", "unreadable"} {
			span := spans.AppendEmpty()
			for _, a := range ourAttributes {
				forge(span.Attributes(), a)
			}
			span.Attributes().Remove(names.Aggregated) // token_sli would not count the span
			span.Attributes().Remove(names.Repeated)   // nor this one
			removeTimelines(span.Attributes())
			if timeline != "" {
				span.Attributes().PutStr(names.Timeline, timeline)
			}
		}
		addStream(spans, 100, 120)
		cfg := annotate.DefaultConfig()
		cfg.TrustAnnotations = trust
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		var verdicts int
		tally := spanreader.Read(sink.AllTraces()[0], &spanreader.Options{}, time.Now(), func(r *series.Contribution) series.Recorded {
			r.Verdicts.All(func(string, slo.Verdict) bool { verdicts++; return true })
			return series.Recorded{}
		})
		if trust {
			require.EqualValues(t, 3, tally.Requests)
			require.Positive(t, verdicts)
			continue
		}
		require.EqualValues(t, 1, tally.Requests)
		require.Zero(t, verdicts)
	}
}

// Inputs are read: they change what is derived.
func TestTrust_InputsAreRead(t *testing.T) {
	for key, expected := range map[string]map[string]any{
		names.Vantage:               {names.Vantage: "client"},
		names.Outcome:               {names.Outcome: "cancelled"},
		"tokenpulse.queue.duration": {"tokenpulse.queue.duration": 0.03},
		names.ChunksDropped:         {"tokenpulse.chunk.count": int64(9)},
		names.StartUnseen:           {"tokenpulse.time_to_first_token": nil},
		names.Frames:                {"tokenpulse.token_count": nil},
	} {
		t.Run(key, func(t *testing.T) {
			traces, spans := newSpans()
			attributes := addStream(spans, 100, 120).Attributes()
			require.NoError(t, attributes.PutEmpty(key).FromRaw(map[string]any{
				names.Vantage: "client", names.Outcome: "cancelled", "tokenpulse.queue.duration": 0.03,
				names.ChunksDropped: 7, names.StartUnseen: true, names.Frames: true,
			}[key]))
			if slices.Contains(tapInputs, key) {
				attributes.PutStr(names.Source, names.SourceTokenTap)
			}
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), untrusting(t))
			require.NoError(t, p.ConsumeTraces(t.Context(), traces))
			raw := spansOf(sink.AllTraces()[0])[0].Attributes().AsRaw()
			for name, value := range expected {
				require.Equal(t, value, raw[name])
			}
		})
	}
}

// OTLP can carry a key twice. Readers differ in which one they take, so a second one could replace
// what the processor wrote on the first.
func TestTrust_RemovesRepeatedInputs(t *testing.T) {
	traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"tokenpulse.vantage","value":{"stringValue":"gateway"}},
		{"key":"tokenpulse.outcome","value":{"stringValue":"error"}},
		{"key":"tokenpulse.vantage","value":{"stringValue":"client"}},
		{"key":"tokenpulse.outcome","value":{"stringValue":"cancelled"}}
	]}]}]}]}`))
	require.NoError(t, err)
	addStream(traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans(), 100)
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), untrusting(t))
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	var vantages, outcomes []string
	for name, v := range spansOf(sink.AllTraces()[0])[0].Attributes().All() {
		switch name {
		case names.Vantage:
			vantages = append(vantages, v.Str())
		case names.Outcome:
			outcomes = append(outcomes, v.Str())
		}
	}
	require.Equal(t, []string{"gateway"}, vantages)
	require.Equal(t, []string{"success"}, outcomes)
}

// Behind another Collector, whose processor removed the timelines, its annotations stay.
func TestTrust_KeepsAnnotationsOfAnotherCollectorByDefault(t *testing.T) {
	traces, spans := newSpans()
	for _, a := range ourAttributes {
		forge(spans.AppendEmpty().Attributes(), a)
	}
	before := ptrace.NewTraces()
	traces.CopyTo(before)
	for _, span := range spansOf(before) {
		removeTimelines(span.Attributes())
	}
	for _, span := range spansOf(traces) {
		removeTimelines(span.Attributes())
	}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	for i, span := range spansOf(sink.AllTraces()[0]) {
		require.Equal(t, spansOf(before)[i].Attributes().AsRaw(), span.Attributes().AsRaw())
	}
}

func TestTrust_CountsRemovedAnnotations(t *testing.T) {
	reader := componenttest.NewTelemetry()
	defer func() { require.NoError(t, reader.Shutdown(t.Context())) }()
	p, _ := newProcessor(t, metadatatest.NewSettings(reader), untrusting(t))
	traces, spans := newSpans()
	attributes := addStream(spans, 100).Attributes()
	attributes.PutStr(names.Vantage, "client")
	attributes.PutStr(names.Source, "forged")
	attributes.PutDouble("tokenpulse.time_to_first_token", 0)
	spans.AppendEmpty().Attributes().PutEmptySlice(names.SLOMet)
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	metadatatest.AssertEqualProcessorTokenLatencyAnnotationsRemoved(t, reader,
		[]metricdata.DataPoint[int64]{{Value: 3}}, metricdatatest.IgnoreTimestamp())
}
