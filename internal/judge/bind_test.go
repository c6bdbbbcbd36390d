// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// everyIndicator has SLOs on each indicator, with thresholds that some requests breach, and conditions
// of every kind.
func everyIndicator(t *testing.T) *annotate.Config {
	t.Helper()
	slos := []map[string]any{{"name": "availability", "indicator": "outcome"}}
	for id := range numbers.Count {
		threshold := any("40ms")
		if id.Row().Unit != numbers.Seconds {
			threshold = 0.5
		}
		if id.Row().Judged {
			slos = append(slos, map[string]any{"name": id.Name(), "indicator": id.Name(), "threshold": threshold})
		}
	}
	conditional := func(name string, settings map[string]any) {
		slo := map[string]any{"name": name, "indicator": "time_to_first_token", "threshold": "40ms"}
		maps.Copy(slo, settings)
		slos = append(slos, slo)
	}
	conditional("model", map[string]any{"match": map[string]any{names.GenAIRequestModel: "a", names.ServiceName: "chat"}})
	conditional("model by pattern", map[string]any{"match_regexp": map[string]any{names.GenAIRequestModel: "a|b"}})
	conditional("vantage", map[string]any{"match": map[string]any{names.Vantage: "server"}})
	conditional("source", map[string]any{"match": map[string]any{names.Source: "token_stream"}})
	conditional("outcome", map[string]any{"match_regexp": map[string]any{names.Outcome: "success|error"}})
	conditional("chunks", map[string]any{"match": map[string]any{"tokenpulse.chunk.count": "2"}})
	conditional("tokens", map[string]any{"match_regexp": map[string]any{names.GenAIOutputTokens: "[0-9]"}})
	conditional("tokens in a range", map[string]any{"match_range": map[string]any{names.GenAIOutputTokens: map[string]any{"min": 1, "max": 3}}})
	conditional("gap in a range", map[string]any{"match_range": map[string]any{"tokenpulse.inter_chunk_latency.mean": map[string]any{"min": 0.03}}})
	conditional("tenant in a range", map[string]any{"match_range": map[string]any{"tenant.ttft": map[string]any{"max": 0.08}}})
	conditional("client errors are bad", map[string]any{"client_errors": "bad"})
	conditional("stalls", map[string]any{"match_regexp": map[string]any{"tokenpulse.stall.duration": "1[.].*"}})
	conditional("threshold of the tenant", map[string]any{"threshold_attribute": "tenant.ttft"})
	conditional("threshold of the request", map[string]any{"threshold_attribute": "tokenpulse.request.duration"})
	return judging(t, slos...)
}

// stream is a random finished stream: its span without our attributes, and what was observed.
func stream(random *rand.Rand) (span ptrace.Span, resource pcommon.Map, observed *source.Observation, line *timeline.Timeline) {
	span, resource, line = ptrace.NewSpan(), pcommon.NewMap(), &timeline.Timeline{}
	at := int64(time.Hour)
	span.SetStartTimestamp(pcommon.Timestamp(at))
	observed = &source.Observation{}
	for range random.IntN(5) {
		at += random.Int64N(int64(80 * time.Millisecond))
		if random.IntN(8) == 0 {
			at += int64(time.Second) - random.Int64N(2)*int64(2*time.Second) // a stall, or the clock goes back
		}
		tokens := 1 + uint32(random.IntN(2))
		if random.IntN(8) == 0 { // what follows is further on in the answer
			tokens = []uint32{10, 100, 1000}[random.IntN(3)]
		}
		line.Append(max(at, 0), tokens, timeline.Channel(random.IntN(4)))
	}
	observed.Request.Duration = time.Duration(at-int64(time.Hour)) + time.Duration(random.Int64N(int64(50*time.Millisecond)))
	observed.Request.Outcome = []string{"", "success", "error", "cancelled", "incomplete"}[random.IntN(5)]
	observed.Request.StartUnknown = random.IntN(8) == 0
	observed.Request.LastChunksDropped = int64(random.IntN(2) * random.IntN(3))
	observed.Vantage = timeline.VantageServer
	if random.IntN(3) == 0 {
		observed.Request.OutputTokens = optional.Of(random.Int64N(4))
		span.Attributes().PutInt(names.GenAIOutputTokens, observed.Request.OutputTokens.Value)
	}
	if model := random.IntN(4); model > 0 {
		span.Attributes().PutStr(names.GenAIRequestModel, string("abc"[model-1]))
	}
	if random.IntN(2) == 0 {
		resource.PutStr(names.ServiceName, "chat")
	}
	switch random.IntN(4) {
	case 0:
		span.Attributes().PutInt(names.HTTPResponseStatusCode, 401)
	case 1:
		span.Attributes().PutStr(names.ErrorType, "404")
	}
	switch random.IntN(4) {
	case 0:
		span.Attributes().PutStr("tenant.ttft", "10ms")
	case 1:
		resource.PutDouble("tenant.ttft", 0.07)
	case 2:
		span.Attributes().PutStr("tenant.ttft", "soon")
	}
	return span, resource, observed, line
}

// derivedRequest is a request without its span, apart from conditions.
type derivedRequest struct {
	derived              *latency.Latency
	cut, interrupted     bool
	attributes, resource pcommon.Map
}

func (r *derivedRequest) Outcome() string { return r.derived.Outcome }
func (r *derivedRequest) Cut() bool       { return r.cut }

func (r *derivedRequest) Interrupted() bool { return r.interrupted }
func (r *derivedRequest) Mistaken() bool {
	return slo.IsClientMistake(r.derived.Outcome, attributes.Status(r.attributes))
}
func (r *derivedRequest) Number(id numbers.ID) latency.Measure { return r.derived.Measures[id] }

func (r *derivedRequest) Attribute(name string) (pcommon.Value, bool) {
	return attributes.LookUp(name, r.attributes, r.resource)
}

// Rules that are bound to the sender's attributes give the verdicts of the annotated span.
func TestBound_VerdictsEqualThoseOfTheSpan(t *testing.T) {
	cfg := everyIndicator(t)
	rules, err := judge.NewRules(cfg.SLOs, false)
	require.NoError(t, err)
	annotator, analyzer := annotate.NewAnnotator(cfg), latency.NewAnalyzer(cfg.Options())
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]map[slo.Verdict]int{}
	for range 20_000 {
		span, resource, observed, line := stream(random)
		common := pcommon.NewMap()
		span.Attributes().CopyTo(common)
		common.Remove(names.GenAIOutputTokens)
		common.PutStr(names.Vantage, observed.Vantage.String())
		common.PutStr(names.Source, names.SourceTokenStream)
		bound := rules.Bind(common, resource)

		derived, err := analyzer.Analyze(observed.Request, line.WalkFrom(int64(span.StartTimestamp())))
		require.NoError(t, err)
		derived.Report(numbers.OutputTokens, observed.Request.OutputTokens) // as token_stream does
		annotator.Annotate(span.Attributes(), observed, &derived)
		request := derivedRequest{&derived, random.IntN(10) == 0, random.IntN(10) == 0, span.Attributes(), resource}
		if request.cut {
			span.Attributes().PutStr(names.Cut, names.CutCollector)
		}
		if request.interrupted {
			span.Attributes().PutBool(names.Interrupted, true)
		}
		verdicts := bound.Judge(nil, &request)
		judge.NewSpanJudge(rules).Judge(span, resource)

		actual := map[string][]any{}
		for _, v := range verdicts {
			if seen[v.SLO] == nil {
				seen[v.SLO] = map[slo.Verdict]int{}
			}
			seen[v.SLO][v.Verdict]++
			list := verdictNames[v.Verdict]
			actual[list] = append(actual[list], v.SLO)
			if v.Verdict == slo.Bad {
				actual[names.SLOBreachedIndicator] = append(actual[names.SLOBreachedIndicator], v.Indicator)
				threshold := any(v.Threshold)
				if v.Indicator == "outcome" {
					threshold = nil
				}
				actual[names.SLOBreachedThreshold] = append(actual[names.SLOBreachedThreshold], threshold)
			}
		}
		expected, breaches := map[string][]any{}, 0
		for name, v := range span.Attributes().All() {
			if strings.HasPrefix(name, names.SLOVerdictPrefix) {
				require.Equal(t, names.SLOVerdictBreached, v.Str())
				breaches++
			} else if strings.HasPrefix(name, names.SLOPrefix) {
				expected[name] = v.Slice().AsRaw()
			}
		}
		require.Equal(t, expected, actual, span.Attributes().AsRaw())
		require.Len(t, actual[names.SLOBreached], breaches)
	}
	for _, c := range cfg.SLOs {
		switch names.Prefix + c.Indicator {
		case "tokenpulse.network.duration", "tokenpulse.queue.duration", "tokenpulse.transfer.duration", "tokenpulse.trace.time_to_answer": // no stream here has them
		default:
			require.Positive(t, seen[c.Name][slo.Good], c.Name)
			require.Positive(t, seen[c.Name][slo.Bad], c.Name)
		}
	}
}
