package tokenstreamreceiver

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Attributes come out as the Collector's own decoder reads them, and bytes that
// are none do no harm.
func FuzzKeyValues(f *testing.F) {
	text := func(s string) *commonv1.AnyValue {
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: s}}
	}
	seed, err := proto.Marshal(&commonv1.KeyValueList{Values: []*commonv1.KeyValue{
		{Key: "text", Value: text("a")},
		{Key: "flag", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_BoolValue{BoolValue: true}}},
		{Key: "count", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_IntValue{IntValue: -7}}},
		{Key: "share", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_DoubleValue{DoubleValue: math.Pi}}},
		{Key: "bytes", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_BytesValue{BytesValue: []byte{1, 2}}}},
		{Key: "list", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: &commonv1.ArrayValue{Values: []*commonv1.AnyValue{text("x"), {}}}}}},
		{Key: "map", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_KvlistValue{KvlistValue: &commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: "k", Value: text("v")}}}}}},
		{Key: "nothing"},
	}})
	require.NoError(f, err)
	f.Add(seed)
	f.Add(seed[:len(seed)-3])
	f.Fuzz(func(t *testing.T, list []byte) {
		got := pcommon.NewMap()
		putKeyValues(got, list)
		if encoded, err := encodeKeyValues(got); err == nil {
			again := pcommon.NewMap()
			putKeyValues(again, encoded)
			require.Equal(t, fmt.Sprint(got.AsRaw()), fmt.Sprint(again.AsRaw())) // NaN and all
		}
		if !isCanonical(list) {
			return
		}
		// A Resource's attributes are encoded as a KeyValueList's values are.
		resource := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), list)
		request := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), resource)
		traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(request)
		require.NoError(t, err)
		want := traces.ResourceSpans().At(0).Resource().Attributes()
		if hasRepeatedKey(want) {
			return // theirs keeps both
		}
		require.True(t, want.Equal(got), "%v\n%v", want.AsRaw(), got.AsRaw())
	})
}

// isCanonical tells whether the bytes are a list as an encoder writes it: others
// may be read in more than one way.
func isCanonical(list []byte) bool {
	var values commonv1.KeyValueList
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(list, &values) != nil {
		return false
	}
	again, err := proto.Marshal(&values)
	return err == nil && bytes.Equal(list, again)
}

func hasRepeatedKey(attributes pcommon.Map) bool {
	seen := map[string]bool{}
	for key, value := range attributes.All() {
		if seen[key] || repeatsInside(value) {
			return true
		}
		seen[key] = true
	}
	return false
}

func repeatsInside(value pcommon.Value) bool {
	switch value.Type() {
	case pcommon.ValueTypeMap:
		return hasRepeatedKey(value.Map())
	case pcommon.ValueTypeSlice:
		for _, element := range value.Slice().All() {
			if repeatsInside(element) {
				return true
			}
		}
	}
	return false
}
