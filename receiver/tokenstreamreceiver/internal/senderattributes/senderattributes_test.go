// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package senderattributes

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Free text must not pass as a category, under any name of it and in a value of any type.
func TestPut_CategoriesHoldNoText(t *testing.T) {
	for name, value := range map[string]*commonv1.AnyValue{
		"error.type":                     {Value: &commonv1.AnyValue_StringValue{StringValue: "my prompt"}},
		"finish_reason":                  {Value: &commonv1.AnyValue_StringValue{StringValue: "my prompt"}},
		"llm.finish_reason":              {Value: &commonv1.AnyValue_BytesValue{BytesValue: []byte("my prompt")}},
		"gen_ai.response.finish_reasons": {Value: &commonv1.AnyValue_KvlistValue{KvlistValue: &commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: "my prompt"}}}}},
	} {
		list := &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: &commonv1.ArrayValue{Values: []*commonv1.AnyValue{value}}}}
		for expected, value := range map[string]*commonv1.AnyValue{"_OTHER": value, `["_OTHER"]`: list} {
			encoded, err := proto.Marshal(&commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: name, Value: value}}})
			require.NoError(t, err)
			attributes := pcommon.NewMap()
			Put(attributes, encoded)
			got, _ := attributes.Get(name)
			require.Equal(t, expected, got.AsString(), name)
		}
	}
}

// putAll agrees with the decoder of the Collector, and accepts any bytes.
func FuzzAttributes(f *testing.F) {
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
		putAll(got, list)
		if !isCanonical(list) {
			return
		}
		// The attributes of a Resource are encoded like a KeyValueList.
		resource := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), list)
		request := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), resource)
		traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(request)
		require.NoError(t, err)
		want := traces.ResourceSpans().At(0).Resource().Attributes()
		if hasRepeatedKey(want) {
			return // the Collector keeps both
		}
		require.True(t, want.Equal(got), "%v\n%v", want.AsRaw(), got.AsRaw())
	})
}

// isCanonical reports whether generated code encodes the list to the same bytes. Other
// encodings are ambiguous.
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
