// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// ReadWhole takes no message that the generated code would not read, wherever a byte is missing or
// one too many, and whether or not a length includes it.
func TestReadWhole_LeavesDamagedMessages(t *testing.T) {
	message, err := proto.Marshal(&tokenpulsev1.TokenStream{
		StreamId: "s", ScheduledTimeUnixNano: 3,
		Start:     &tokenpulsev1.StreamStart{TimeUnixNano: 1, TraceId: slices.Repeat([]byte{1}, 16), Vantage: 1},
		ChunkRuns: []*tokenpulsev1.ChunkRun{{Channel: 1, TimeUnixNano: 2, DeltaUnitNanos: 1000, TimeDeltas: []int64{0, 200}}},
		End:       &tokenpulsev1.StreamEnd{TimeUnixNano: 4, Usage: &tokenpulsev1.Usage{InputTokens: proto.Uint64(300)}, FinishReason: "stop", Error: "e", Cancelled: true},
	})
	require.NoError(t, err)
	taken := 0
	check := func(damaged []byte) {
		var whole assembly.Whole
		if !ReadWhole(damaged, nil, &whole) {
			return
		}
		taken++
		var plain tokenpulsev1.TokenStream
		require.NoError(t, proto.Unmarshal(damaged, &plain), "%x", damaged)
		require.Equal(t, plain.GetStreamId(), string(whole.ID))
		require.EqualValues(t, plain.GetStart().GetTimeUnixNano(), whole.Start.UnixNano)
		require.EqualValues(t, plain.GetEnd().GetTimeUnixNano(), whole.End.UnixNano)
		require.EqualValues(t, plain.GetEnd().GetUsage().GetInputTokens(), whole.End.Usage.Input.Value)
	}
	check(message)
	require.Equal(t, 1, taken)
	for at := range len(message) + 1 {
		check(message[:at])
		for length := range at {
			for _, more := range []byte{0x00, 0x07, 0x08, 0x80, 0xff} {
				damaged := slices.Insert(slices.Clone(message), at, more)
				check(damaged)
				damaged[length]++
				check(damaged)
			}
		}
	}
	require.Greater(t, taken, 2, "no change leaves a valid message")
}

func TestSentAttributes_RejectsOtherFieldsBetween(t *testing.T) {
	attributes := func(start *tokenpulsev1.StreamStart) []byte {
		encoded, err := proto.Marshal(start)
		require.NoError(t, err)
		return encoded
	}
	complete := func(sent ...[]byte) bool {
		a := WalkSent(InEvent, slices.Concat(sent...))
		for a.Next() {
			require.True(t, a.Valid())
		}
		return a.Complete()
	}
	one := attributes(&tokenpulsev1.StreamStart{Attributes: []*commonv1.KeyValue{{Key: "a"}}})
	require.True(t, complete(one, one))
	for _, other := range [][]byte{attributes(&tokenpulsev1.StreamStart{TimeUnixNano: 1}), attributes(&tokenpulsev1.StreamStart{TraceId: []byte{1}})} {
		require.False(t, complete(one, other, one))
	}
}

// An unknown field leaves the meaning of a KeyValue, but not its usual encoding.
func TestReadKeyValue_EqualsThatWithAnUnknownField(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	usual := 0
	for range 20_000 {
		message, err := proto.Marshal(&commonv1.KeyValue{
			Key:   strings.Repeat("k", random.IntN(4)*random.IntN(50)),
			Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: strings.Repeat("v", random.IntN(4)*random.IntN(50))}},
		})
		require.NoError(t, err)
		switch random.IntN(3) {
		case 0:
			message[random.IntN(len(message))] = byte(random.Uint32())
		case 1:
			message = message[:random.IntN(len(message))]
		}
		if _, _, ok := usualText(message); ok {
			usual++
		} else {
			continue
		}
		other := append(slices.Clone(message), 3<<3, 0)
		require.Equal(t, checkKeyValue(other, 0), checkKeyValue(message, 0), "%x", message)
		key, value := readKeyValue(message)
		wantKey, wantValue := readKeyValue(other)
		require.Equal(t, string(wantKey), string(key), "%x", message)
		require.Equal(t, wantValue.Kind, value.Kind)
		require.Equal(t, string(wantValue.Bytes), string(value.Bytes))
	}
	require.Greater(t, usual, 2000)
}
