// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	logsv1 "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func stringValue(s string) *commonv1.AnyValue {
	return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: s}}
}

func TestLogs_ChunkAllocatesNothing(t *testing.T) {
	// LogsData is encoded like an ExportLogsServiceRequest.
	request, err := proto.Marshal(&logsv1.LogsData{ResourceLogs: []*logsv1.ResourceLogs{{
		ScopeLogs: []*logsv1.ScopeLogs{{LogRecords: []*logsv1.LogRecord{{
			TimeUnixNano: t0, EventName: "gen_ai.token.generated", TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567"),
			Attributes: []*commonv1.KeyValue{{Key: "gen_ai.request.model", Value: stringValue("m")}, {Key: "tokens", Value: stringValue("3")}},
		}}}},
	}}})
	require.NoError(t, err)
	batch := newStore().NewBatch()
	var decoder Logs
	decode := func() {
		err := decoder.Decode(request, batch, func(_ int, _ string, err error) { t.Error(err) })
		if err != nil {
			t.Error(err)
		}
	}
	decode() // the start and the stream ID are allocated once
	require.Less(t, testing.AllocsPerRun(100, decode), 1.0)
}

func TestCanonical_DoesNotDependOnFieldOrder(t *testing.T) {
	key := protowire.AppendString(protowire.AppendTag(nil, keyValueKey, protowire.BytesType), "k")
	text := protowire.AppendString(protowire.AppendTag(nil, StringValue, protowire.BytesType), "v")
	value := protowire.AppendBytes(protowire.AppendTag(nil, keyValueValue, protowire.BytesType), text)
	list := func(fields ...[]byte) (encoded []byte) {
		encoded, start := openMessage(nil, keyValueListValues)
		for _, f := range fields {
			encoded = append(encoded, f...)
		}
		return closeMessage(encoded, start)
	}
	want := list(key, value)
	for name, encoded := range map[string][]byte{
		"key first":     list(key, value),
		"value first":   list(value, key),
		"unknown field": list(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1), key, value),
		"key twice":     list(key, key, value),
		"value twice":   list(key, value, value),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := appendAttributes(nil, encoded)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func FuzzCanonical(f *testing.F) {
	seed, err := proto.Marshal(&commonv1.KeyValueList{Values: []*commonv1.KeyValue{
		{Key: "text", Value: stringValue("a")},
		{Key: "flag", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_BoolValue{BoolValue: true}}},
		{Key: "share", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_DoubleValue{DoubleValue: 0.5}}},
		{Key: "bytes", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_BytesValue{BytesValue: []byte{1, 2}}}},
		{Key: "list", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: &commonv1.ArrayValue{Values: []*commonv1.AnyValue{stringValue("x"), {}}}}}},
		{Key: "map", Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_KvlistValue{KvlistValue: &commonv1.KeyValueList{Values: []*commonv1.KeyValue{{Key: "k", Value: stringValue("v")}}}}}},
		{Key: "nothing"},
	}})
	require.NoError(f, err)
	f.Add(seed)
	f.Add(seed[:len(seed)-3])
	f.Fuzz(func(t *testing.T, list []byte) {
		once, err := appendAttributes(nil, list)
		if err != nil {
			return
		}
		require.NoError(t, proto.Unmarshal(once, new(commonv1.KeyValueList)))
		twice, err := appendAttributes(nil, once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
