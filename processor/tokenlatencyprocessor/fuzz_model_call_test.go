// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
)

// scopedSpan is a span and the name of its scope.
type scopedSpan struct {
	ptrace.Span
	scope string
}

// vocabulary holds the spans of all golden cases, at least one for each reader, and the words in them.
type vocabulary struct {
	spans                                  []scopedSpan
	keys, texts, events, spanNames, scopes []string
}

func readVocabulary(tb testing.TB) *vocabulary {
	tb.Helper()
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.yaml"))
	require.NoError(tb, err)
	words := &vocabulary{events: []string{"llm.content.completion.chunk", "gen_ai.first_token", "first_token", "llm.last_token"}}
	for _, input := range inputs {
		traces := golden.ReadTraces(tb, input)
		for _, resourceSpans := range traces.ResourceSpans().All() {
			for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
				for _, span := range scopeSpans.Spans().All() {
					packTimeline(tb, span.Attributes())
					words.learn(scopedSpan{span, scopeSpans.Scope().Name()})
				}
			}
		}
	}
	for _, aliases := range names.Aliases {
		words.keys = append(words.keys, aliases...)
	}
	for _, a := range ourAttributes {
		words.keys = append(words.keys, a.Key)
	}
	for _, list := range []*[]string{&words.keys, &words.texts, &words.events, &words.spanNames, &words.scopes} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return words
}

func (words *vocabulary) learn(span scopedSpan) {
	words.spans = append(words.spans, span)
	words.scopes = append(words.scopes, span.scope)
	words.spanNames = append(words.spanNames, span.Name())
	for key, v := range span.Attributes().All() {
		words.keys = append(words.keys, key)
		if v.Type() == pcommon.ValueTypeStr {
			words.texts = append(words.texts, v.Str())
		}
	}
	for _, event := range span.Events().All() {
		words.events = append(words.events, event.Name())
	}
}

func pick(list []string, n uint64) string { return list[n%uint64(len(list))] }

// stepLength is the length in bytes of one step of a distortion: the operation, the word it applies
// to, and its operand.
const stepLength = 1 + 2 + 8

// distort changes a span, step by step.
func (words *vocabulary) distort(span *scopedSpan, steps []byte) {
	for ; len(steps) >= stepLength; steps = steps[stepLength:] {
		word, bits := uint64(binary.LittleEndian.Uint16(steps[1:])), binary.LittleEndian.Uint64(steps[3:])
		attributes, key := span.Attributes(), pick(words.keys, word)
		switch kind := steps[0] >> 4; steps[0] & 0xf {
		case 0, 1:
			putAnything(attributes, key, kind, bits)
		case 2:
			attributes.PutStr(key, pick(words.texts, bits))
		case 3:
			attributes.PutStr(key, strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64))
		case 4:
			attributes.PutDouble(key, math.Float64frombits(bits))
		case 5:
			attributes.PutStr(key, time.Duration(bits).String())
		case 6:
			attributes.PutStr(key, time.Unix(0, int64(bits)).UTC().Format(time.RFC3339Nano))
		case 7:
			putAnything(attributes, string(steps[3:stepLength]), kind, bits)
		case 8: // around the span
			event := span.Events().AppendEmpty()
			event.SetName(pick(words.events, word))
			event.SetTimestamp(span.StartTimestamp() + pcommon.Timestamp(bits%uint64(2*time.Second)) - pcommon.Timestamp(time.Second/2))
		case 9: // at any time
			event := span.Events().AppendEmpty()
			event.SetName(pick(words.events, word))
			event.SetTimestamp(pcommon.Timestamp(bits))
			putAnything(event.Attributes(), "ai.response.msToFirstChunk", kind, bits)
		case 10:
			span.SetDroppedEventsCount(uint32(bits))
			span.SetKind(ptrace.SpanKind(word % 6))
			span.Status().SetCode(ptrace.StatusCode(kind % 3))
		case 11:
			span.SetStartTimestamp(pcommon.Timestamp(bits))
		case 12:
			span.SetEndTimestamp(pcommon.Timestamp(bits))
		case 13:
			span.SetEndTimestamp(span.StartTimestamp() + pcommon.Timestamp(bits%uint64(time.Minute)))
		case 14:
			span.SetName(pick(words.spanNames, bits))
		case 15:
			span.scope = pick(words.scopes, bits)
		}
	}
}

// step encodes a step for a seed.
func step(what byte, word uint16, bits uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16([]byte{what}, word), bits)
}

// forgery encodes steps that set all attributes under our prefix to values of one kind.
func (words *vocabulary) forgery(kind byte, bits uint64) (steps []byte) {
	for _, a := range ourAttributes {
		steps = append(steps, step(kind<<4, uint16(slices.Index(words.keys, a.Key)), bits)...)
	}
	return steps
}

// Every span passes and keeps its data, and every added number is plausible. The default settings,
// and all settings together, must cope with annotations of any content. At an edge no annotation of
// a sender is left.
func FuzzModelCall(f *testing.F) {
	words := readVocabulary(f)
	second := uint64(time.Second)
	for i := range words.spans {
		span := uint8(i)
		f.Add(span, []byte{})
		f.Add(span, slices.Concat(step(8, uint16(i), second), step(9, uint16(i), math.MaxUint64), step(10, uint16(i), 3), step(8, 0, second)))
		f.Add(span, slices.Concat(step(4, uint16(7*i), math.Float64bits(math.NaN())), step(3, uint16(5*i), math.Float64bits(-1e-300)), step(12, 0, epoch-1)))
		f.Add(span, slices.Concat(step(15, 0, uint64(i)), step(14, 0, uint64(3*i)), step(2, uint16(i), uint64(i)), step(6, uint16(11*i), epoch)))
	}
	for kind := range byte(9) {
		for _, bits := range []uint64{0, math.MaxUint64, math.MaxInt64, math.Float64bits(1 << 53), math.Float64bits(math.MaxFloat64)} {
			f.Add(kind, words.forgery(kind, bits))
		}
	}
	cfg := annotate.DefaultConfig()
	cfg.Fluidity = configoptional.Some(FluidityConfig{TimeToFirstToken: time.Second, TimePerOutputToken: time.Millisecond})
	p, sink := newProcessor(f, processortest.NewNopSettings(typ), cfg)
	edge := untrusting(f)
	edge.Fluidity, edge.Timeline = cfg.Fluidity, annotate.TimelineKeep
	edgeProcessor, edgeSink := newProcessor(f, processortest.NewNopSettings(typ), edge)
	all := *edge
	all.TrustAnnotations = true
	allProcessor, allSink := newProcessor(f, processortest.NewNopSettings(typ), &all)
	f.Fuzz(func(t *testing.T, base uint8, steps []byte) {
		span := words.spans[int(base)%len(words.spans)]
		traces := ptrace.NewTraces()
		scopeSpans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		distorted := scopedSpan{scopeSpans.Spans().AppendEmpty(), span.scope}
		span.CopyTo(distorted.Span)
		words.distort(&distorted, steps[:min(len(steps), 100*stepLength)])
		scopeSpans.Scope().SetName(distorted.scope)
		below := addStream(scopeSpans.Spans(), 100, 200)
		distorted.SetSpanID(pcommon.SpanID{1})
		below.SetParentSpanID(distorted.SpanID())
		below.SetTraceID(distorted.TraceID())
		below.SetSpanID(pcommon.SpanID{2})
		before := ptrace.NewSpan()
		distorted.CopyTo(before)
		atEdge, withAll := ptrace.NewTraces(), ptrace.NewTraces()
		traces.CopyTo(atEdge)
		traces.CopyTo(withAll)

		sink.Reset()
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		require.Equal(t, 2, sink.SpanCount(), "no span is lost")
		spans := spansOf(sink.AllTraces()[0])
		if _, derivedBefore := before.Attributes().Get(names.Source); !derivedBefore {
			requireSane(t, spans[0].Attributes())
		}
		requireKept(t, before, spans[0])
		first, _ := spans[1].Attributes().Get("tokenpulse.time_to_first_token")
		require.Equal(t, 0.1, first.Double(), "the other span is unaffected")

		allSink.Reset()
		require.NoError(t, allProcessor.ConsumeTraces(t.Context(), withAll))
		require.GreaterOrEqual(t, allSink.SpanCount(), 2)

		edgeSink.Reset()
		require.NoError(t, edgeProcessor.ConsumeTraces(t.Context(), atEdge))
		atEdgeSpan := spansOf(edgeSink.AllTraces()[0])[0]
		requireSane(t, atEdgeSpan.Attributes())
		requireKept(t, before, atEdgeSpan)
		requireOwn(t, atEdgeSpan.Attributes())
	})
}

// requireOwn fails if a span without our annotation has attributes under our prefix that only
// senders can have set. A root span has the sums of its trace.
func requireOwn(t *testing.T, attributes pcommon.Map) {
	t.Helper()
	if _, annotated := attributes.Get(names.Source); annotated {
		return
	}
	for key := range attributes.All() {
		sum := slices.ContainsFunc(traceAttributes, func(a documented) bool { return a.Key == key })
		estimated := key == names.Estimated // of the sums
		unread := key == names.Timeline || key == names.ChunkOffsets || key == names.ChunkTokens || key == names.ChunkChannels || key == names.Vantage
		require.True(t, !strings.HasPrefix(key, names.Prefix) || sum || estimated || unread, key)
	}
}

// requireKept fails if a span lost or changed anything outside our prefix, or gained a standard
// attribute without a plausible value.
func requireKept(t *testing.T, before, after ptrace.Span) {
	t.Helper()
	for key, v := range before.Attributes().All() {
		if strings.HasPrefix(key, names.Prefix) {
			continue
		}
		kept, ok := after.Attributes().Get(key)
		require.True(t, ok && kept.Type() == v.Type() && kept.AsString() == v.AsString(), "%s was %q", key, v.AsString())
	}
	standard := map[string]names.Standard{}
	for _, s := range append(filledAttributes, names.OperationName) {
		standard[names.Aliases[s][0]] = s
	}
	for key, v := range after.Attributes().All() {
		if _, was := before.Attributes().Get(key); was || strings.HasPrefix(key, names.Prefix) {
			continue
		}
		if key == names.ErrorType {
			outcome, _ := after.Attributes().Get(names.Outcome)
			require.Equal(t, names.OutcomeError, outcome.Str())
			require.Equal(t, names.Category(v.Str()), v.Str())
			continue
		}
		s, ok := standard[key]
		require.True(t, ok, "%s was added", key)
		switch s {
		case names.OperationName, names.ProviderName, names.RequestModel:
			require.NotEmpty(t, v.Str(), key)
		case names.TimeToFirstChunk:
			require.Equal(t, pcommon.ValueTypeDouble, v.Type())
			duration := time.Duration(before.EndTimestamp() - before.StartTimestamp()).Seconds()
			if reported, found := after.Attributes().Get("tokenpulse.request.duration"); found { // some senders report it apart from the span's times
				duration = reported.Double()
			}
			require.True(t, 0 <= v.Double() && v.Double() <= duration, "%s is %v of %v", key, v.Double(), duration)
		default:
			require.Equal(t, pcommon.ValueTypeInt, v.Type())
			require.GreaterOrEqual(t, v.Int(), int64(0), key)
		}
	}
	require.Equal(t, withoutAttributes(t, before), withoutAttributes(t, after))
}

// withoutAttributes encodes a span without its attributes.
func withoutAttributes(t *testing.T, span ptrace.Span) []byte {
	t.Helper()
	traces, spans := newSpans()
	rest := spans.AppendEmpty()
	span.CopyTo(rest)
	rest.Attributes().Clear()
	encoded, err := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
	require.NoError(t, err)
	return encoded
}
