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
)

func TestSentAttributes_RejectsOtherFieldsBetween(t *testing.T) {
	complete := func(sent ...[]byte) bool {
		a := WalkSent(slices.Concat(sent...))
		for a.Next() {
			require.True(t, a.Valid())
		}
		return a.Complete()
	}
	one, err := proto.Marshal(&commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: "a"}}})
	require.NoError(t, err)
	require.True(t, complete(one, one))
	for _, other := range [][]byte{{2 << 3, 1}, {2<<3 | 2, 1, 0}, {1 << 3, 1}} {
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
