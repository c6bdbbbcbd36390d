// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/ptrace"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// arrival is the time at which all requests of these tests arrive.
var arrival = time.Unix(1_795_300_000, 0)

// newTestKeeper returns a keeper of its own, without a next consumer.
func newTestKeeper(t testing.TB, config *publish.Config) *keeper.Keeper {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { _ = telemetry.Shutdown(context.Background()) })
	options := config.Shared.EngineOptions()
	options.Metrics = series.Selection{}
	for _, name := range series.MetricNames() {
		options.Metrics[name] = true
	}
	k, err := keeper.New(keeper.Settings{
		Config: &config.Shared, Telemetry: telemetry.NewTelemetrySettings(), Component: component.MustNewID("test"), Kind: component.KindReceiver,
		Output: "metrics", Engine: series.NewEngine(options), Interval: time.Minute, Now: func() time.Time { return arrival },
	})
	require.NoError(t, err)
	return k
}

// throughSpans records streams in the way of a traces pipeline: as spans, which token_latency
// annotates and token_sli reads.
type throughSpans struct {
	keeper    *keeper.Keeper
	observer  source.Observer
	analyzer  *latency.Analyzer
	annotator *annotate.Annotator
	rules     *judge.Rules
}

func (p *throughSpans) record(ctx context.Context, finished []assembly.Finished) {
	traces := plainSpans(finished).Traces
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				p.annotate(scope.Scope().Name(), span)
				judge.NewSpanJudge(p.rules).Judge(span, resource.Resource().Attributes())
			}
		}
	}
	p.keeper.Record(ctx, traces)
}

// plainSpans returns the spans of streams, with timelines.
func plainSpans(finished []assembly.Finished) streamspan.Made {
	return streamspan.New(&streamspan.Settings{}).Make(finished, nil)
}

func (p *throughSpans) annotate(scope string, span ptrace.Span) {
	observed, err := p.observer.Observe(scope, span)
	if err != nil {
		return
	}
	derived, err := p.analyzer.Analyze(observed.Request, observed.Timeline)
	if err == nil {
		p.annotator.Annotate(span.Attributes(), observed, &derived)
	}
}

// collected describes all series and budgets of a keeper, bit for bit.
func collected(k *keeper.Keeper) (all []string) {
	note := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	k.Engine.Collect(arrival, func(s *series.Snapshot) {
		note("%q %v %v %+v", s.Key, s.Labels, s.Start, s.SLOs)
		for _, c := range series.Counters {
			n, ok := s.Count(c.Count)
			note("%q %v: %x %v", s.Key, c, math.Float64bits(n), ok)
		}
		for i := range s.Outcomes {
			o := &s.Outcomes[i]
			note("%q %v: %v %v", s.Key, series.OutcomeNames[i], o.Start, o.Requests)
			for j := range o.Distributions {
				if d := &o.Distributions[j]; !o.Empty() && d.Sketch.Count() > 0 {
					note("%q %v %v: %x %v %v", s.Key, series.OutcomeNames[i], numbers.Table[j].Metric.Name, d.Sketch.AppendBinary(nil), d.Classic, d.Exemplars)
				}
			}
		}
	})
	k.Engine.Standard.Collect(func(s *series.StandardSnapshot) {
		for i := range s.Metrics {
			m := &s.Metrics[i]
			note("%q %v %v %v: %v", s.Key, s.Start, m.As, m.Value, m.Sum)
			if d := &m.Distribution; m.Bounds != nil {
				note("%q %v %v: %x %v %v", s.Key, m.As, m.Value, d.Sketch.AppendBinary(nil), d.Classic, d.Exemplars)
			}
		}
	})
	k.Tracker.Visit(arrival, func(b *slo.Budgets) {
		for i := range b.Each {
			note("%q %v: %+v", b.Key, b.Each[i].SLO, b.Each[i].Recent)
		}
	})
	return all
}

// streamSource makes streams of every kind.
type streamSource struct {
	*rand.Rand
	store *assembly.Store
	lists [][]byte // of attributes
	sent  []assembly.Finished
}

func (r *streamSource) one(of ...string) string { return of[r.IntN(len(of))] }

func (r *streamSource) chance(percent int) bool { return r.IntN(100) < percent }

// value returns an attribute value of any type.
func (r *streamSource) value() *commonv1.AnyValue {
	switch r.IntN(12) {
	case 0:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_IntValue{IntValue: int64(r.IntN(5)) - 1}}
	case 1:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_DoubleValue{DoubleValue: []float64{0, 0.05, 1, math.NaN(), math.Inf(1), -1}[r.IntN(6)]}}
	case 2:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_BoolValue{BoolValue: r.chance(50)}}
	case 3:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: &commonv1.ArrayValue{Values: []*commonv1.AnyValue{r.value()}}}}
	case 4:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_KvlistValue{KvlistValue: &commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: "a", Value: r.value()}}}}}
	case 5:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_BytesValue{BytesValue: []byte("bytes")}}
	case 6:
		return &commonv1.AnyValue{}
	default:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: r.one("", "chat", "gold", "llama", "50ms", "2", "0.03", "401")}}
	}
}

// attributes returns an encoded list. Keys may repeat. Most lists are those of another stream, or differ
// from them in one attribute.
func (r *streamSource) attributes(most int) (list []byte) {
	if most == 2 && r.chance(60) { // of a resource, or an end
		return nil
	}
	if len(r.lists) < 3 || r.chance(10) {
		list = r.newAttributes(most)
		r.lists = append(r.lists, list)
		return list
	}
	list = r.lists[r.IntN(len(r.lists))]
	if r.chance(30) {
		list = slices.Concat(list, r.newAttributes(1))
	}
	if r.chance(30) {
		list = slices.Concat(r.newAttributes(1), list)
	}
	return list
}

func (r *streamSource) newAttributes(most int) []byte {
	list := &commonv1.KeyValueList{}
	for range r.IntN(most + 1) {
		key := r.one("service.name", "gen_ai.request.model", "gen_ai.provider.name", "gen_ai.operation.name", "tenant", "limit", "user", "llm.model_name", "gen_ai.system",
			"gen_ai.response.model", "http.response.status_code", "error.type", "server.address", "server.port", "gen_ai.request.stream")
		switch {
		case most == 1 && r.chance(60):
			key = fmt.Sprint("own-", r.IntN(1000))
		case r.chance(8):
			key = r.one("tokenpulse.outcome", "tokenpulse.vantage", "tokenpulse.stall.count", "gen_ai.usage.output_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.audio.output_tokens",
				"llm.usage.completion_tokens", "gen_ai.response.finish_reasons", "gen_ai.response.time_to_first_chunk", "ttft_ms", "error.type",
				"gen_ai.latency.time_to_first_token", "openinference.span.kind", "gen_ai.request.stream", "")
		}
		value := r.value()
		if key == "error.type" && r.chance(70) { // that of a client's mistake
			value = &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: "401"}}
		}
		list.Values = append(list.Values, &commonv1.KeyValue{Key: key, Value: value})
	}
	encoded, err := proto.Marshal(list)
	if err != nil {
		panic(err)
	}
	return encoded
}

// addEvents adds events to a part. They need not be valid.
func (r *streamSource) addEvents(part *assembly.Part, begin int64, first, last bool) {
	const micro = int64(time.Microsecond)
	if first && r.chance(92) {
		start := assembly.Start{UnixNano: begin, Vantage: timeline.Vantage(r.IntN(2) * r.IntN(5))}
		if r.chance(20) {
			start.TraceID[0] = byte(1 + r.IntN(3))
		}
		if r.chance(20) {
			start.SpanID[0] = byte(1 + r.IntN(200))
		}
		_ = part.AddStart(start, r.attributes(6), r.attributes(2))
	}
	if r.chance(20) {
		_ = part.AddScheduled(begin + r.Int64N(400)*1e6 - 50e6)
	}
	at := begin + r.Int64N(2e9) - 1e8
	numbered := r.chance(20)
	seq := uint64(r.IntN(3))
	for range r.IntN([]int{3, 30, 300}[r.IntN(3)]) {
		k := assembly.Chunk{UnixNano: at, Tokens: 1, Seq: seq, Numbered: numbered}
		if r.chance(10) {
			k.Channel = timeline.Channel(r.IntN(4))
		}
		if r.chance(5) {
			k.Tokens = uint32(r.IntN(6))
		}
		_ = part.AddChunk(k)
		seq++
		at += []int64{0, r.Int64N(1000), r.Int64N(60_000) * micro, 20_000 * micro, r.Int64N(1e6), 50e6}[r.IntN(6)]
		switch r.IntN(150) {
		case 0:
			at += r.Int64N(3e9) // a stall
		case 1:
			at -= r.Int64N(1e9) // a clock anomaly
		case 2:
			seq -= min(seq, 3) // repeats
		}
	}
	if last && r.chance(90) {
		end := assembly.End{FinishReason: r.one("", "stop", "error"), Error: r.one("", "", "", "failed"), Cancelled: r.chance(15), Interrupted: r.chance(5)}
		if r.chance(70) {
			end.UnixNano = at + r.Int64N(2e9) - 1e8
		}
		for _, tokens := range []*optional.Value[int64]{&end.Usage.Input, &end.Usage.Output, &end.Usage.Reasoning, &end.Usage.CachedInput, &end.Usage.CacheWrite} {
			if r.chance(50) {
				*tokens = optional.Of(r.Int64N(500))
			}
		}
		_ = part.AddEnd(end, r.attributes(2))
	}
}

// next returns finished streams: whole ones, those that end after several parts, expired and
// cut ones, and some that were finished before.
func (r *streamSource) next(t testing.TB) []assembly.Finished {
	t.Helper()
	for range 1 + r.IntN(3) {
		batch := r.store.NewBatch()
		for range 1 + r.IntN(8) {
			part, err := batch.Part(fmt.Append(nil, "stream-", r.IntN(40)))
			require.NoError(t, err)
			before := batch.Events()
			r.addEvents(part, 1_795_233_292_000_000_000+r.Int64N(3)*1e9+r.Int64N(1000), r.chance(70), r.chance(70))
			if batch.Events() > before {
				part.Count(0)
			}
		}
		tx, err := r.store.Begin(t.Context(), batch)
		require.NoError(t, err)
		r.finished(tx)
	}
	switch r.IntN(4) {
	case 0:
		r.finished(r.store.Expire(assembly.Timeouts{}, 5))
	case 1:
		r.finished(r.store.Cut(assembly.Timeouts{Idle: time.Hour, FirstToken: time.Hour}, 0, 5))
	}
	batch := r.sent[max(0, len(r.sent)-12):]
	if len(r.sent) > 0 && r.chance(20) {
		batch = append(batch[:len(batch):len(batch)], r.sent[r.IntN(len(r.sent))])
	}
	return batch
}

func (r *streamSource) finished(tx *assembly.Transaction) {
	r.sent = append(r.sent, tx.Finished...)
	_ = tx.Commit()
}

// settings returns settings with and without SLOs, dimensions and details of all kinds.
func (r *streamSource) settings() (*annotate.Config, *publish.Config) {
	settings, published := annotate.DefaultConfig(), publish.NewDefaultConfig()
	settings.Detail = r.one(annotate.DetailStandard, annotate.DetailFull)
	if r.chance(15) {
		settings.Distribution = annotate.DistributionDrop
	}
	if r.chance(20) {
		settings.TPOTDenominator = "after_first_chunk"
	}
	if r.chance(20) {
		settings.Fluidity = configoptional.Some(annotate.FluidityConfig{TimeToFirstToken: time.Second, TimePerOutputToken: 30 * time.Millisecond})
	}
	below := func(n float64) judge.Range { return judge.Range{Max: &n} }
	slos := []judge.SLOConfig{
		{Name: "ttft", Indicator: "time_to_first_token", Threshold: "500ms"},
		{Name: "tpot", Indicator: "time_per_output_token", Threshold: "20ms", Match: map[string]string{"gen_ai.operation.name": "chat"}},
		{Name: "p99", Indicator: "inter_token_latency.p99", Threshold: "50ms", MatchRegexp: map[string]string{"gen_ai.request.model": "l.*|2"}},
		{Name: "own", Indicator: "request.duration", Threshold: "3s", ThresholdAttribute: "limit"},
		{Name: "available", Indicator: "outcome", Match: map[string]string{"tokenpulse.vantage": "server"}},
		{Name: "strict", Indicator: "outcome", ClientErrors: "bad"},
		{Name: "stalls", Indicator: "stall.count", Threshold: 1, Match: map[string]string{"tokenpulse.outcome": "success"}},
		{Name: "anomalies", Indicator: "clock.anomalies", Threshold: 1, Match: map[string]string{"tenant": "gold"}},
		{Name: "odd", Indicator: "queue.duration", Threshold: "10ms", ThresholdAttribute: "tokenpulse.prefill.duration", MatchRegexp: map[string]string{"gen_ai.usage.output_tokens": ".*1.*"}},
		{Name: "chunks", Indicator: "inter_chunk_latency.max", Threshold: "60ms"},
		{Name: "short", Indicator: "time_to_first_token", Threshold: "500ms", MatchRange: map[string]judge.Range{"gen_ai.usage.input_tokens": below(250)}},
		{Name: "cached", Indicator: "time_to_first_token", Threshold: "500ms", MatchRange: map[string]judge.Range{"tokenpulse.cached_input.share": {Min: 0.5}, "limit": below(1)}},
		{Name: "network", Indicator: "network.duration", Threshold: "60ms"},
	}
	r.Shuffle(len(slos), func(i, j int) { slos[i], slos[j] = slos[j], slos[i] })
	settings.SLOs = slos[:r.IntN(len(slos)+1)]
	for _, s := range settings.SLOs {
		if r.chance(40) {
			published.Shared.Objectives = append(published.Shared.Objectives, keeper.Objective{SLO: s.Name, Objective: 0.9, Window: time.Hour})
		}
	}
	if r.chance(60) {
		all := []string{"gen_ai.request.model", "service.name", "tenant", "limit", "gen_ai.provider.name", "tokenpulse.source", "tokenpulse.vantage"}
		if r.chance(20) {
			all = append(all, r.one("gen_ai.usage.output_tokens", "tokenpulse.stall.count", "gen_ai.response.time_to_first_chunk"))
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		published.Shared.Series.Dimensions = append(series.DimensionsOf(all[:r.IntN(len(all)+1)]...), r.bands()...)
	}
	if r.chance(30) {
		published.Shared.Series.MaxSeries = 3
	}
	if r.chance(20) {
		published.Shared.Deduplication.Horizon = 0
	}
	if r.chance(60) {
		published.Shared.Conventions = conventions.Config{GenAI: []string{"v1.41", "latest"}, Vantages: []string{r.one("client", "server"), "engine"}}
		if r.chance(50) {
			published.Shared.Conventions.Attributes = []string{r.one("gen_ai.request.model", "gen_ai.response.model"), "server.port", "server.address"}
		}
	}
	return settings, &published
}

// bands returns dimensions with bands. In a third of the settings, one of them needs a span.
func (r *streamSource) bands() (some series.Dimensions) {
	all := series.Dimensions{
		{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{100, 250}},
		{Attribute: "gen_ai.usage.output_tokens", Bands: []float64{2, 3, 20, 250}},
		{Attribute: "tokenpulse.cached_input.share", Bands: []float64{0.2, 0.5}},
		{Attribute: "tokenpulse.stall.count", Bands: []float64{1}},
		{Attribute: "tokenpulse.time_to_first_token", Bands: []float64{0.5}},
		{Attribute: "tokenpulse.output_token_rate", Bands: []float64{50}},
		{Attribute: "limit", Bands: []float64{0.05, 1}},
		{Attribute: "http.response.status_code", Bands: []float64{400}},
	}
	if r.chance(30) {
		all = append(all, series.Dimension{Attribute: r.one("tokenpulse.inter_token_latency.p99", "gen_ai.response.time_to_first_chunk"), Bands: []float64{0.05}})
	}
	for i := range all {
		if r.chance(30) {
			all[i].Label = fmt.Sprint("band-", i)
			some = append(some, all[i])
		}
	}
	return some
}

// Series from the wire are those from annotated spans, bit for bit, whatever is sent and
// configured.
func TestSeriesRecorder_EqualsTheSpanPath(t *testing.T) {
	rounds := 100 / testenv.RaceSlowdown
	if testing.Short() {
		rounds = 20
	}
	shared := 0
	for seed := range uint64(rounds) {
		shared += checkEqualSeries(t, seed)
	}
	require.Greater(t, shared, rounds*8, "streams do not share identities")
}

// checkEqualSeries returns the number of streams that had the identity of another one.
func checkEqualSeries(t *testing.T, seed uint64) (shared int) {
	t.Helper()
	clock := time.Duration(0)
	r := &streamSource{Rand: rand.New(rand.NewPCG(seed, 1)), store: assembly.NewStore(assembly.Limits{
		MaxStreams: 1000, MaxChunksPerStream: 200, MaxStreamBytes: 64 << 10, MaxMemory: 1 << 30,
	}, func() time.Duration { clock++; return clock })}
	settings, published := r.settings()
	require.NoError(t, settings.Validate(), "seed %d", seed)
	require.Empty(t, published.Problems(), "seed %d", seed)
	rules, err := judge.NewRules(settings.SLOs, false)
	require.NoError(t, err)
	ofSpans := settings
	if published.Shared.Conventions.On() { // they need the gaps between chunks
		ofSpans = settings.WithChunkGaps()
	}
	spans := &throughSpans{
		keeper: newTestKeeper(t, published), analyzer: latency.NewAnalyzer(ofSpans.Options()),
		annotator: annotate.NewAnnotator(ofSpans), rules: rules,
	}
	telemetry, err := metadata.NewTelemetryBuilder(componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	k := newTestKeeper(t, published)
	direct := New(&Settings{
		Latency: settings, Rules: rules, Series: published, Keeper: k, Reporter: latencyreport.New(telemetry, zap.NewNop()),
		Logger: zap.NewNop(), Now: func() time.Time { return arrival },
	})
	for range 10 {
		finished := r.next(t)
		made := plainSpans(finished)
		require.Equal(t, made.Removed, direct.Record(t.Context(), finished, made.IDs), "removed attributes, seed %d", seed)
		for i := range finished { // Make orders them by resource, and sums depend on the order
			spans.record(t.Context(), finished[i:i+1])
		}
	}
	want, got := collected(spans.keeper), collected(k)
	require.Len(t, got, len(want), "seed %d", seed)
	for i := range want {
		require.Equal(t, want[i], got[i], "seed %d", seed)
	}
	return len(r.sent) - int(direct.Identities.Resolved())
}
