// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

func newStore() *assembly.Store {
	var now time.Duration
	return assembly.NewStore(assembly.Limits{
		MaxStreams: 1000, MaxChunksPerStream: 1000, MaxStreamBytes: 64 << 10, MaxMemory: 64 << 20,
	}, func() time.Duration { now++; return now })
}

// reference decodes a request with the generated type.
func reference(t *testing.T, encoded []byte, batch *assembly.Batch, reject Reject) error {
	var request tokenpulsev1.ExportTokenStreamsRequest
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, &request); err != nil {
		return err
	}
	for _, resource := range request.GetResourceTokenStreams() {
		for _, stream := range resource.GetTokenStreams() {
			part, first := batch.Part([]byte(stream.GetStreamId()))
			if first == nil {
				before := part.Snapshot()
				if first = referenceStream(t, resource.GetResource(), stream, part); first != nil {
					part.Restore(&before)
				} else {
					part.Count(0)
				}
			}
			if first != nil {
				reject(0, stream.GetStreamId(), first)
			}
		}
	}
	return nil
}

func list(t *testing.T, attributes []*commonv1.KeyValue) []byte {
	encoded, err := proto.Marshal(&commonv1.KeyValueList{Values: attributes})
	require.NoError(t, err)
	return encoded
}

var errTest = errors.New("invalid")

func referenceStream(t *testing.T, resource *resourcev1.Resource, stream *tokenpulsev1.TokenStream, part *assembly.Part) error {
	if s := stream.GetStart(); s != nil {
		start := assembly.Start{UnixNano: int64(s.GetTimeUnixNano()), Vantage: timeline.Vantage(min(uint32(s.GetVantage()), 255))}
		for _, id := range []struct{ dst, src []byte }{{start.TraceID[:], s.GetTraceId()}, {start.SpanID[:], s.GetSpanId()}, {start.ParentSpanID[:], s.GetParentSpanId()}} {
			if len(id.src) == 0 {
				continue
			}
			if len(id.src) != len(id.dst) || strings.Trim(string(id.src), "\x00") == "" {
				return errTest
			}
			copy(id.dst, id.src)
		}
		if len(s.GetAttributes()) > maxAttributes || len(resource.GetAttributes()) > maxAttributes {
			return errTest
		}
		if err := part.AddStart(start, list(t, s.GetAttributes()), list(t, resource.GetAttributes())); err != nil {
			return err
		}
	}
	if at := stream.GetScheduledTimeUnixNano(); at != 0 {
		if err := part.AddScheduled(int64(at)); err != nil {
			return err
		}
	}
	for _, run := range stream.GetChunkRuns() {
		if err := referenceRun(run, part); err != nil {
			return err
		}
	}
	if e := stream.GetEnd(); e != nil {
		count := func(n *uint64) optional.Value[int64] {
			if n == nil {
				return optional.Value[int64]{}
			}
			return optional.Value[int64]{Value: int64(min(*n, math.MaxInt64)), Known: true}
		}
		usage := e.GetUsage()
		if usage == nil {
			usage = &tokenpulsev1.Usage{}
		}
		if len(e.GetAttributes()) > maxAttributes {
			return errTest
		}
		return part.AddEnd(assembly.End{
			UnixNano: int64(e.GetTimeUnixNano()), FinishReason: e.GetFinishReason(), Error: e.GetError(), Cancelled: e.GetCancelled(), Interrupted: e.GetInterrupted(),
			Usage: assembly.Usage{
				Input: count(usage.InputTokens), Output: count(usage.OutputTokens), Reasoning: count(usage.ReasoningTokens),
				CachedInput: count(usage.CachedInputTokens), CacheWrite: count(usage.CacheWriteInputTokens),
			},
		}, list(t, e.GetAttributes()))
	}
	return nil
}

func referenceRun(run *tokenpulsev1.ChunkRun, part *assembly.Part) error {
	unit := int64(max(1, run.GetDeltaUnitNanos()))
	count := len(run.GetTimeDeltas())
	if run.GetTimeUnixNano() > math.MaxInt64 || run.GetDeltaUnitNanos() > 86400e9 || run.GetChannel() < 0 || run.GetChannel() > 3 ||
		(len(run.GetTokens()) != 0 && len(run.GetTokens()) != count) || run.GetFirstSequenceNumber() > math.MaxInt64-uint64(count) {
		return errTest
	}
	at := int64(run.GetTimeUnixNano())
	for i, delta := range run.GetTimeDeltas() {
		if delta > math.MaxInt64/4/unit || delta < -(math.MaxInt64/4/unit) {
			return errTest
		}
		at += delta * unit
		chunk := assembly.Chunk{UnixNano: at, Tokens: 1, Channel: timeline.Channel(run.GetChannel())}
		if len(run.GetTokens()) > 0 {
			chunk.Tokens = run.GetTokens()[i]
		}
		if run.FirstSequenceNumber != nil {
			chunk.Seq, chunk.Numbered = run.GetFirstSequenceNumber()+uint64(i), true
		}
		if err := part.AddChunk(chunk); err != nil {
			return err
		}
	}
	return nil
}

// outcome renders the result of a request as text.
func outcomeOf(t *testing.T, decode func(*assembly.Batch, Reject) error) (string, error) {
	store := newStore()
	batch := store.NewBatch()
	var out strings.Builder
	if err := decode(batch, func(_ int, id string, _ error) { fmt.Fprintf(&out, "rejected %q\n", id) }); err != nil {
		return "", err
	}
	tx, err := store.Begin(t.Context(), batch)
	if err != nil {
		return "", err
	}
	for _, r := range tx.Rejected {
		fmt.Fprintf(&out, "rejected %q: %s\n", r.ID, r.Err)
	}
	render := func(finished []assembly.Finished) {
		for _, f := range finished {
			line := f.Chunks.Timeline()
			end := *f.End
			end.Attributes = nil
			fmt.Fprintf(&out, "%q %+v %d end %+v at %d\n%x\n%s\n%s\n%s\n", f.ID, f.Start, f.Scheduled, end, f.EndUnixNano(),
				line.AppendBinary(nil, f.Start.UnixNano), decoded(t, f.Attributes), decoded(t, f.End.Attributes), decoded(t, f.Resource))
		}
	}
	render(tx.Finished)
	require.NoError(t, tx.Commit())
	for {
		tx := store.Expire(assembly.Timeouts{}, 1)
		if len(tx.Finished) == 0 {
			break
		}
		f := tx.Finished[0]
		fmt.Fprintf(&out, "open %q %d\n", f.ID, f.Start.UnixNano)
		require.NoError(t, tx.Commit())
	}
	return sortLines(out.String()), nil
}

func decoded(t *testing.T, encoded []byte) string {
	var values commonv1.KeyValueList
	require.NoError(t, proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(encoded, &values))
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(&values)
	require.NoError(t, err)
	return hex.EncodeToString(out)
}

func sortLines(s string) string {
	if strings.Count(s, "open ") < 2 { // shards make the order of open streams random
		return s
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		for j := i + 1; j < len(lines); j++ {
			if strings.HasPrefix(lines[i], "open ") && strings.HasPrefix(lines[j], "open ") && lines[j] < lines[i] {
				lines[i], lines[j] = lines[j], lines[i]
			}
		}
	}
	return strings.Join(lines, "\n")
}

const t0 = 1_795_233_292_181_556_000

func sample() *tokenpulsev1.ExportTokenStreamsRequest {
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
		Resource: &resourcev1.Resource{Attributes: []*commonv1.KeyValue{{Key: "service.name", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: "chat"}}}}},
		TokenStreams: []*tokenpulsev1.TokenStream{
			{
				StreamId: "s1",
				Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0, TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567"), Vantage: 2, Attributes: []*commonv1.KeyValue{
					{Key: "list", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: &commonv1.ArrayValue{Values: []*commonv1.AnyValue{
						{Value: &commonv1.AnyValue_IntValue{IntValue: -7}}, {Value: &commonv1.AnyValue_DoubleValue{DoubleValue: 0.5}}, {},
					}}}}},
					{Key: "map", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_KvlistValue{KvlistValue: &commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: "k"}}}}}},
				}},
				ScheduledTimeUnixNano: t0 + 1000,
				ChunkRuns: []*tokenpulsev1.ChunkRun{
					{Channel: 1, TimeUnixNano: t0 + 5000, TimeDeltas: []int64{0, 20_000, -5, 0}, Tokens: []uint32{1, 2, 0, 300}, FirstSequenceNumber: proto.Uint64(3)},
					{TimeUnixNano: t0 + 90_000, DeltaUnitNanos: 1000, TimeDeltas: []int64{0, 20, 30}, FirstSequenceNumber: proto.Uint64(0)},
				},
				End: &tokenpulsev1.StreamEnd{TimeUnixNano: t0 + 200_000, FinishReason: "stop", Usage: &tokenpulsev1.Usage{OutputTokens: proto.Uint64(9)}, Cancelled: true},
			},
			{StreamId: "s2", Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0}},
			{StreamId: "s3", End: &tokenpulsev1.StreamEnd{Error: "no"}},
		},
	}}}
}

func requireAgrees(t *testing.T, encoded []byte) {
	t.Helper()
	var decoder TokenStreams
	got, err := outcomeOf(t, func(b *assembly.Batch, r Reject) error { return decoder.Decode(encoded, b, r) })
	want, wantErr := outcomeOf(t, func(b *assembly.Batch, r Reject) error { return reference(t, encoded, b, r) })
	if err != nil && strings.Contains(err.Error(), "nested more than") {
		return // protobuf-go goes deeper
	}
	require.Equal(t, wantErr == nil, err == nil, "got %v, want %v", err, wantErr)
	require.Equal(t, want, got)
}

func TestTokenStreams_AgreeWithGeneratedType(t *testing.T) {
	encoded, err := proto.Marshal(sample())
	require.NoError(t, err)
	requireAgrees(t, encoded)
	for cut := range encoded {
		requireAgrees(t, encoded[:cut])
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		mutated := append([]byte{}, encoded...)
		for range 1 + random.IntN(3) {
			mutated[random.IntN(len(mutated))] ^= 1 << random.IntN(8)
		}
		requireAgrees(t, mutated)
	}
}

// Long runs, with varints of all lengths.
func TestChunkRuns_InNanosecondsAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		run := &tokenpulsev1.ChunkRun{
			TimeUnixNano: t0 + 5000, Channel: tokenpulsev1.Channel(random.IntN(4)),
			TimeDeltas: make([]int64, random.IntN(400)),
		}
		for i := range run.TimeDeltas {
			run.TimeDeltas[i] = random.Int64N(1 << random.IntN(36))
		}
		if odd := random.IntN(2*len(run.TimeDeltas) + 1); odd < len(run.TimeDeltas) {
			run.TimeDeltas[odd] = random.Int64() - random.Int64()
		}
		if random.IntN(3) == 0 {
			run.FirstSequenceNumber = proto.Uint64(1)
		}
		if random.IntN(3) == 0 {
			run.Tokens = make([]uint32, len(run.TimeDeltas))
			for i := range run.Tokens {
				run.Tokens[i] = random.Uint32N(3)
			}
		}
		message := sample()
		message.ResourceTokenStreams[0].TokenStreams[1].ChunkRuns = []*tokenpulsev1.ChunkRun{run}
		message.ResourceTokenStreams[0].TokenStreams[1].End = &tokenpulsev1.StreamEnd{}
		encoded, err := proto.Marshal(message)
		require.NoError(t, err)
		requireAgrees(t, encoded)
		// Joins two varints, or splits one.
		encoded[random.IntN(len(encoded))] ^= 0x80
		requireAgrees(t, encoded)
	}
}

// Runs in microseconds take the fast path or not: several in a stream, in order or
// not, with sequence numbers or without, at and beyond the limits of times and streams.
func TestChunkRuns_InMicrosecondsAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		var runs []*tokenpulsev1.ChunkRun
		at, seq := int64(t0+5000), uint64(0)
		for range 1 + random.IntN(3) {
			run := &tokenpulsev1.ChunkRun{
				TimeUnixNano: uint64(at), DeltaUnitNanos: 1000, Channel: tokenpulsev1.Channel(random.IntN(4)),
				TimeDeltas: make([]int64, random.IntN(600)),
			}
			for i := range run.TimeDeltas {
				if i > 0 || random.IntN(4) == 0 {
					run.TimeDeltas[i] = random.Int64N(1 << random.IntN(20))
					at += run.TimeDeltas[i] * 1000
				}
			}
			switch random.IntN(16) {
			case 0:
				run.FirstSequenceNumber = proto.Uint64(seq)
				seq += uint64(len(run.TimeDeltas)) / 2 // some chunks repeat
			case 1:
				run.Channel = 4
			case 2:
				run.TimeUnixNano = 1<<63 + t0
			case 3:
				run.TimeUnixNano = t0 + 24*3600*1e9 - uint64(random.Int64N(1e9)) // the latest accepted time
			case 4:
				run.Tokens = make([]uint32, len(run.TimeDeltas))
			case 5, 6, 7:
				if n := len(run.TimeDeltas); n > 0 { // one of another size
					run.TimeDeltas[random.IntN(n)%(1+random.IntN(n))] = random.Int64N(1<<random.IntN(62)) - random.Int64N(1<<random.IntN(62))
				}
			}
			runs = append(runs, run)
		}
		message := sample()
		message.ResourceTokenStreams[0].TokenStreams[1].ChunkRuns = runs
		message.ResourceTokenStreams[0].TokenStreams[1].End = &tokenpulsev1.StreamEnd{}
		encoded, err := proto.Marshal(message)
		require.NoError(t, err)
		requireAgrees(t, encoded)
	}
}

// Encodings that protobuf allows and generated code never writes.
func TestTokenStreams_UnusualEncodings(t *testing.T) {
	field := func(num protowire.Number, content ...[]byte) []byte {
		var all []byte
		for _, c := range content {
			all = append(all, c...)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), all)
	}
	varint := func(num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
	}
	fixed := func(num protowire.Number, v uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), v)
	}
	id := field(streamID, []byte("s"))
	start := field(streamStart, fixed(startTime, t0))
	end := field(streamEnd)
	resource := field(1, field(1, field(1, []byte("k")), field(2, field(1, []byte("v")))))
	stream := func(content ...[]byte) []byte { return field(1, field(2, content...)) }
	run := func(content ...[]byte) []byte {
		return field(streamChunkRuns, append(content, fixed(runTime, t0+1))...)
	}
	tests := map[string][]byte{
		"id last":                                   stream(start, end, id),
		"resource last":                             field(1, field(2, id, start, end), resource),
		"resource twice":                            field(1, resource, field(2, id, start, end), resource),
		"start twice is one":                        stream(id, start, field(streamStart, field(startTraceID, []byte("0123456789abcdef"))), end),
		"two ids, the last wins":                    stream(field(streamID, []byte("x")), start, id, end),
		"deltas one by one":                         stream(id, start, run(varint(runDeltas, 2), varint(runDeltas, 4)), end),
		"deltas in two packs and one":               stream(id, start, run(field(runDeltas, []byte{2}), varint(runDeltas, 4), field(runDeltas, []byte{2, 2})), end),
		"one, then a pack":                          stream(id, start, run(varint(runTokens, 9), varint(runDeltas, 4), field(runTokens, []byte{7}), field(runDeltas, []byte{2})), end),
		"tokens beyond 32 bits are truncated":       stream(id, start, run(varint(runDeltas, 2), varint(runTokens, 1<<32|5)), end),
		"a varint of ten bytes":                     stream(id, start, run(field(runDeltas, []byte{0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00})), end),
		"a varint that overflows":                   stream(id, start, run(field(runDeltas, []byte{0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02})), end),
		"a varint of eleven bytes":                  stream(id, start, run(field(runDeltas, []byte{0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00})), end),
		"a pack that stops in a varint":             stream(id, start, run(field(runDeltas, []byte{2, 0x80})), end),
		"wrong wire types are unknown":              stream(id, varint(streamStart, 1), start, fixed(runDeltas, 1), end),
		"an unknown group":                          stream(id, start, []byte{0x7b, 0x08, 0x01, 0x7c}, end),
		"a group that does not end":                 stream(id, start, []byte{0x7b, 0x08, 0x01}, end),
		"the end of a group without its start":      stream(id, start, []byte{0x7c}, end),
		"a field number out of range":               []byte("\xf0\xcd\xcd\xcd0\xcd0"),
		"field zero":                                {0x02, 0x00},
		"invalid UTF-8 in an id":                    stream(field(streamID, []byte{0xff}), start, end),
		"invalid UTF-8 in an error":                 stream(id, start, field(streamEnd, field(endError, []byte{0xff}))),
		"invalid UTF-8 in a key":                    stream(id, field(streamStart, fixed(startTime, t0), field(startAttributes, field(1, []byte{0xff})))),
		"invalid UTF-8 deep inside":                 stream(id, field(streamStart, fixed(startTime, t0), field(startAttributes, field(2, field(5, field(1, field(1, []byte{0xff}))))))),
		"invalid UTF-8 in an ignored field":         field(1, field(1, field(resourceEntityRefs, field(2, []byte{0xff}))), field(2, id, start)),
		"value before key":                          stream(id, field(streamStart, fixed(startTime, t0), field(startAttributes, field(2, field(1, []byte("v"))), field(1, []byte("k")))), end),
		"malformed after an invalid value":          stream(id, field(streamStart, fixed(startTime, 0)), field(streamEnd, []byte{0x08})),
		"the same stream twice, the second invalid": append(stream(id, start, run(varint(runDeltas, 2))), stream(id, run(varint(runDeltas, 4), varint(runTokens, 1<<30)), end)...),
	}
	for name, encoded := range tests {
		t.Run(name, func(t *testing.T) { requireAgrees(t, encoded) })
	}
}

func FuzzTokenStreams(f *testing.F) {
	encoded, err := proto.Marshal(sample())
	require.NoError(f, err)
	f.Add(encoded)
	f.Add([]byte{})
	inOrder := sample()
	for _, run := range inOrder.ResourceTokenStreams[0].TokenStreams[0].ChunkRuns {
		run.Tokens, run.FirstSequenceNumber = nil, nil
	}
	encoded, err = proto.Marshal(inOrder)
	require.NoError(f, err)
	f.Add(encoded)
	f.Fuzz(func(t *testing.T, encoded []byte) { requireAgrees(t, encoded) })
}

// A body that is converted to protobuf is the same after another round trip.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"resourceTokenStreams":[{"tokenStreams":[{"streamId":"a","start":{"timeUnixNano":"1795233292181556000","traceId":"0af7651916cd43dd8448eb211c80319c"}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := JSONToProtobuf(body)
		if err != nil {
			return
		}
		var decoder TokenStreams
		_, err = outcomeOf(t, func(b *assembly.Batch, r Reject) error { return decoder.Decode(message, b, r) })
		if err != nil && !strings.Contains(err.Error(), "max_") {
			require.ErrorContains(t, err, "nested")
		}
		var request, again tokenpulsev1.ExportTokenStreamsRequest
		require.NoError(t, proto.Unmarshal(message, &request))
		mapped, err := protojson.Marshal(&request)
		if err != nil {
			return // the times of a protojson message may be out of its range
		}
		message, err = JSONToProtobuf(mapped)
		require.NoError(t, err)
		require.NoError(t, proto.Unmarshal(message, &again))
		require.True(t, proto.Equal(&request, &again), "%v\n%v", &request, &again)
	})
}
