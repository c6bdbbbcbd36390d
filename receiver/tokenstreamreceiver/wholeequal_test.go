// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// arrival is the time at which all requests of these tests arrive.
var arrival = time.Unix(1_795_300_000, 0)

// wirePath is a receiver that records series with a clock that stands still.
type wirePath struct {
	*tokenStreamReceiver
	*keeper.Keeper
	plain bool // whole streams go through the store, too
	// added describes the requests of the last message, sorted: both paths take the streams of a
	// message in another order.
	added []string
}

func newWirePath(t testing.TB, plain bool, change func(*Config)) *wirePath {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.MaxStreams, cfg.MaxChunksPerStream, cfg.MaxEventBytes, cfg.MaxMemoryMiB = 60, 40, 1024, 64
	change(cfg)
	r, err := newReceiverWithClock(cfg, receivertest.NewNopSettings(metadata.Type), func() time.Duration { return time.Hour })
	require.NoError(t, err)
	require.NoError(t, r.sendMetrics(consumertest.NewNop()))
	p := &wirePath{tokenStreamReceiver: r, Keeper: r.publisher.Keeper, plain: plain}
	r.ingester.series = r.newRecorder(p, func() time.Time { return arrival })
	return p
}

// AddTo describes a request, and adds it.
func (p *wirePath) AddTo(h *series.Handle, r *series.Contribution) series.Recorded {
	p.added = append(p.added, describe(h, r))
	return p.Keeper.AddTo(h, r)
}

// describe describes a request bit for bit.
func describe(h *series.Handle, r *series.Contribution) string {
	key := string(r.AppendKey(nil))
	if h != nil {
		key = h.Key
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%q %v %v %+v %+v %x%x", key, r.Outcome, r.Arrival, r.Gaps, r.Verdicts, r.TraceID, r.SpanID)
	for _, id := range numbers.Histograms {
		if id >= numbers.Singles {
			d := *r.Distribution(id)
			if d.Values != nil {
				d.Sketch = d.Values.AppendBinary(nil)
			}
			fmt.Fprintf(&text, " %x %x", d.Sketch, math.Float64bits(d.Max))
		} else if v, ok := r.Value(id); ok {
			fmt.Fprintf(&text, " %d=%x", id, math.Float64bits(v))
		}
	}
	for c, n := range r.Sums {
		fmt.Fprintf(&text, " %v=%x", c, math.Float64bits(n))
	}
	return text.String()
}

// send applies a message. It describes the answer, and everything that the receiver holds.
func (p *wirePath) send(t testing.TB, message []byte) (answered string, whole int) {
	t.Helper()
	var applied answer
	req := p.take(p.reportHTTP, false, &applied)
	defer p.put(req)
	if p.plain {
		req.tokenStreams.Whole = nil
	}
	if err := req.readProtobuf(message); err != nil {
		return fmt.Sprintf("unreadable: %v", err), 0
	}
	whole = req.wholes.Len()
	if refused := req.commit(t.Context()); refused != nil {
		return fmt.Sprintf("refused: %v", refused), 0
	}
	store := p.ingester.store
	return fmt.Sprintf("%+v, %d open with %d events", applied, store.Streams(), store.Accepted()), whole
}

func withSLOs(cfg *Config) {
	settings := annotate.DefaultConfig()
	settings.SLOs = []judge.SLOConfig{
		{Name: "p99", Indicator: "inter_token_latency.p99", Threshold: "20ms", Match: map[string]string{"gen_ai.request.model": "a"}},
		{Name: "tpot", Indicator: "time_per_output_token", Threshold: "20ms", ThresholdAttribute: "limit"},
		{Name: "long", Indicator: "request.duration", Threshold: "1s", MatchRange: map[string]judge.Range{"gen_ai.usage.output_tokens": {Min: 25}}},
		{Name: "odd", Indicator: "request.duration", Threshold: "1s", Match: map[string]string{"gen_ai.usage.output_tokens": "3"}},
	}
	cfg.Latency = configoptional.Some(*settings)
	published := publish.NewDefaultConfig()
	published.Shared.Series.Dimensions = append(published.Shared.Series.Dimensions,
		series.Dimension{Attribute: "gen_ai.usage.output_tokens", Bands: []float64{10, 25}}, series.Dimension{Attribute: "limit", Bands: []float64{1, 2}})
	cfg.Series = configoptional.Some(published)
}

// checkEqualPaths sends messages on both paths. It returns the number of whole streams that did
// not enter the store.
func checkEqualPaths(t testing.TB, direct, plain *wirePath, messages ...[]byte) (whole int) {
	t.Helper()
	for _, message := range messages {
		direct.added, plain.added = nil, nil
		want, _ := plain.send(t, message)
		got, n := direct.send(t, message)
		require.Equal(t, want, got)
		whole += n
		slices.Sort(direct.added)
		slices.Sort(plain.added)
		require.Equal(t, plain.added, direct.added)
	}
	return whole
}

// randomMessages makes messages of whole and other streams, and damages some.
type randomMessages struct {
	*rand.Rand
	ids *byte // of spans, which differ within a message
}

func (r randomMessages) one(of ...string) string { return of[r.IntN(len(of))] }

func (r randomMessages) attributes(most int) (all []*commonv1.KeyValue) {
	for range r.IntN(most + 1) {
		value := &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: r.one("a", "b", "", "50ms")}}
		if r.IntN(4) == 0 {
			value = &commonv1.AnyValue{Value: &commonv1.AnyValue_IntValue{IntValue: r.Int64N(3)}}
		}
		all = append(all, &commonv1.KeyValue{
			Key: r.one("gen_ai.request.model", "gen_ai.provider.name", "limit", "user", "tokenpulse.outcome", "gen_ai.usage.input_tokens", "llm.model_name"), Value: value,
		})
	}
	return all
}

func (r randomMessages) stream() *tokenpulsev1.TokenStream {
	s := &tokenpulsev1.TokenStream{StreamId: fmt.Sprint("s", r.IntN(40))}
	begin := uint64(t0) + uint64(r.IntN(2))*1e9 + uint64(r.IntN(2)*1234)
	if r.IntN(25) > 0 {
		s.Start = &tokenpulsev1.StreamStart{TimeUnixNano: begin, Vantage: tokenpulsev1.Vantage(max(0, r.IntN(60)-54)), Attributes: r.attributes(3)}
		if r.IntN(3) == 0 {
			s.Start.TraceId = make([]byte, 16)
			s.Start.TraceId[0] = byte(r.IntN(3))
		}
		if r.IntN(3) == 0 {
			*r.ids++
			s.Start.SpanId = []byte{1, 2, 3, 4, 5, 6, 7, *r.ids}[:8-r.IntN(2)*r.IntN(2)]
		}
	}
	if r.IntN(4) == 0 {
		s.ScheduledTimeUnixNano = begin + uint64(r.IntN(1e9))
	}
	at := begin + uint64(r.IntN(1e9))
	for range []int{1, 1, 1, 1, 1, 1, 0, 2}[r.IntN(8)] {
		run := &tokenpulsev1.ChunkRun{TimeUnixNano: at, DeltaUnitNanos: 1000, Channel: tokenpulsev1.Channel([]int32{0, 0, 0, 0, 0, 1, 2, 7}[r.IntN(8)])}
		for i := range r.IntN(50) {
			delta := r.Int64N([]int64{30_000, 100, 700_000, 3_000_000}[max(0, r.IntN(400)-396)])
			if i == 0 && r.IntN(10) > 0 {
				delta = 0
			}
			if r.IntN(300) == 0 {
				delta = -delta
			}
			run.TimeDeltas = append(run.TimeDeltas, delta)
			at += uint64(delta * 1000)
		}
		switch r.IntN(30) {
		case 0:
			run.DeltaUnitNanos = 1
		case 1:
			run.FirstSequenceNumber = proto.Uint64(3)
		case 2:
			run.Tokens = make([]uint32, len(run.TimeDeltas))
		case 3:
			run.TimeUnixNano = uint64(r.Int64())
		}
		s.ChunkRuns = append(s.ChunkRuns, run)
	}
	if r.IntN(20) > 0 {
		s.End = &tokenpulsev1.StreamEnd{
			TimeUnixNano: at + uint64(r.IntN(1e9)), FinishReason: r.one("", "stop"), Error: r.one("", "", "failed"),
			Cancelled: r.IntN(6) == 0, Attributes: r.attributes(1),
		}
		if r.IntN(8) == 0 {
			s.End.TimeUnixNano = []uint64{0, begin - 5, uint64(t0) + 90_000e9}[r.IntN(3)]
		}
		if r.IntN(2) == 0 {
			s.End.Usage = &tokenpulsev1.Usage{InputTokens: proto.Uint64(5), OutputTokens: proto.Uint64(uint64(r.IntN(50))), ReasoningTokens: proto.Uint64(uint64(r.IntN(2)) * 2e9 * uint64(r.IntN(2)))}
			if r.IntN(2) == 0 {
				s.End.Usage.CacheWriteInputTokens = proto.Uint64(uint64(r.IntN(3)) * 1e9)
			}
		}
	}
	return s
}

func (r randomMessages) message(tb testing.TB) []byte {
	tb.Helper()
	request := &tokenpulsev1.ExportTokenStreamsRequest{}
	for range 1 + r.IntN(2) {
		resource := &tokenpulsev1.ResourceTokenStreams{Resource: &resourcev1.Resource{Attributes: r.attributes(2)}}
		for range r.IntN(7) {
			resource.TokenStreams = append(resource.TokenStreams, r.stream())
		}
		request.ResourceTokenStreams = append(request.ResourceTokenStreams, resource)
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	require.NoError(tb, err)
	if len(encoded) > 0 {
		switch r.IntN(20) {
		case 0:
			encoded = encoded[:r.IntN(len(encoded))]
		case 1, 2, 3:
			encoded[r.IntN(len(encoded))] ^= 1 << r.IntN(8)
		}
	}
	return encoded
}

// Whole streams that bypass the store leave exactly what they leave otherwise: answers, open
// streams, and series bit for bit.
func TestWholeStreams_EqualThePlainPath(t *testing.T) {
	whole := 0
	for seed := range uint64(150 / testenv.RaceSlowdown) {
		r := randomMessages{rand.New(rand.NewPCG(seed, 2)), new(byte)}
		change := func(*Config) {}
		if seed%2 == 0 {
			change = withSLOs
		}
		direct, plain := newWirePath(t, false, change), newWirePath(t, true, change)
		for range 20 {
			message := r.message(t)
			t.Logf("seed %d: %x", seed, message)
			whole += checkEqualPaths(t, direct, plain, message)
			if r.IntN(5) == 0 {
				whole += checkEqualPaths(t, direct, plain, message)
			}
			if t.Failed() {
				return
			}
		}
	}
	require.Greater(t, whole, 2000/testenv.RaceSlowdown, "whole streams are not recognised")
}

// Without deduplication: of two streams with the same IDs in one message, each path could take
// another one as the first.
func FuzzWholeStreams(f *testing.F) {
	change := func(c *Config) {
		withSLOs(c)
		c.Series.Get().Shared.Deduplication.Horizon = 0
	}
	r := randomMessages{rand.New(rand.NewPCG(1, 3)), new(byte)}
	for range 30 {
		f.Add(r.message(f), r.message(f))
	}
	whole := encodeWhole(f, 3, 10, func(int) []*commonv1.KeyValue { return nil })
	f.Add(whole, append(slices.Clone(whole), whole...))
	direct, plain := newWirePath(f, false, change), newWirePath(f, true, change) // too slow for each input
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, p := range []*wirePath{direct, plain} {
			_ = p.ingester.store.Cut(p.cfg.timeouts(), time.Hour, math.MaxInt).Commit()
		}
		checkEqualPaths(t, direct, plain, first, second, first)
	})
}

// requestOfStreams encodes a request of streams.
func requestOfStreams(t testing.TB, streams ...*tokenpulsev1.TokenStream) []byte {
	t.Helper()
	encoded, err := proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{
		ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{TokenStreams: streams}},
	})
	require.NoError(t, err)
	return encoded
}

func aWhole(id string) *tokenpulsev1.TokenStream {
	return &tokenpulsev1.TokenStream{
		StreamId: id, Start: &tokenpulsev1.StreamStart{TimeUnixNano: uint64(t0)},
		ChunkRuns: []*tokenpulsev1.ChunkRun{{TimeUnixNano: uint64(t0) + 1e9, DeltaUnitNanos: 1000, TimeDeltas: []int64{0, 20_000, 30_000}}},
		End:       &tokenpulsev1.StreamEnd{TimeUnixNano: uint64(t0) + 2e9},
	}
}

func requestsOf(p *wirePath) (n uint64) {
	p.Engine.Collect(arrival, func(s *series.Snapshot) {
		for i := range s.Outcomes {
			n += s.Outcomes[i].Requests
		}
	})
	return n
}

func TestWholeStreams_SentTwiceInARequestCountOnce(t *testing.T) {
	p := newWirePath(t, false, func(*Config) {})
	answered, whole := p.send(t, requestOfStreams(t, aWhole("a"), aWhole("b"), aWhole("a")))
	require.Equal(t, 1, whole, "the repeated stream has to be merged")
	require.Contains(t, answered, "Accepted:3")
	require.EqualValues(t, 2, requestsOf(p))
}

func TestWholeStreams_OpenedBetweenDecodeAndCommitAreMerged(t *testing.T) {
	p := newWirePath(t, false, func(*Config) {})
	var applied answer
	req := p.take(p.reportHTTP, false, &applied)
	defer p.put(req)
	require.NoError(t, req.readProtobuf(requestOfStreams(t, aWhole("a"))))
	require.Equal(t, 1, req.wholes.Len())

	opening := aWhole("a")
	opening.End, opening.ChunkRuns[0].TimeUnixNano = nil, uint64(t0)+5e8
	_, _ = p.send(t, requestOfStreams(t, opening))
	require.EqualValues(t, 1, p.ingester.store.Streams())

	require.Nil(t, req.commit(t.Context()))
	require.Equal(t, 1, applied.Accepted)
	require.Zero(t, p.ingester.store.Streams(), "the open stream is not ended")
	require.EqualValues(t, 1, requestsOf(p))
}

// A request that ends streams may open others while the pipeline refuses data, however the ended ones
// are read.
func TestWholeStreams_BesideAStartWhileThePipelineRefuses(t *testing.T) {
	for _, plain := range []bool{true, false} {
		p := newWirePath(t, plain, func(*Config) {})
		p.ingester.refuseStarts(p.ingester.now() + time.Hour)
		opening := aWhole("open")
		opening.End = nil
		answered, _ := p.send(t, requestOfStreams(t, opening))
		require.Contains(t, answered, "the pipeline temporarily refuses data")
		answered, _ = p.send(t, requestOfStreams(t, aWhole("a"), opening))
		require.Contains(t, answered, "Accepted:2")
		require.EqualValues(t, 1, p.ingester.store.Streams())
	}
}

func TestWholeStreams_OfARequestThatIsUnreadableLaterAreNotRecorded(t *testing.T) {
	p := newWirePath(t, false, func(*Config) {})
	damaged := protowire.AppendTag(requestOfStreams(t, aWhole("a")), 1, protowire.BytesType)
	answered, _ := p.send(t, damaged)
	require.Contains(t, answered, "unreadable")
	require.Zero(t, requestsOf(p))
	_, whole := p.send(t, requestOfStreams(t, aWhole("a")))
	require.Equal(t, 1, whole)
	require.EqualValues(t, 1, requestsOf(p))
}

func TestWholeStreams_TakeNoMoreThanTheirMemory(t *testing.T) {
	p := newWirePath(t, false, func(c *Config) { c.MaxMemoryMiB = 1 })
	var streams []*tokenpulsev1.TokenStream
	for i := range 3000 {
		streams = append(streams, aWhole(strconv.Itoa(i)))
	}
	answered, _ := p.send(t, requestOfStreams(t, streams...))
	require.Contains(t, answered, "max_memory_mib")
	require.Zero(t, requestsOf(p))
	require.Zero(t, p.ingester.store.Memory())
}
