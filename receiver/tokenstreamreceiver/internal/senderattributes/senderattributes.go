// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package senderattributes converts the attributes that senders of token events set.
package senderattributes

import (
	"bytes"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// knownKeys holds the keys that nearly all streams have, to save their allocation.
var knownKeys = func() map[string]string {
	known := map[string]string{}
	for _, key := range [...]string{
		names.ServiceName, names.GenAIOperationName, names.GenAIProviderName, names.GenAIRequestModel,
		names.GenAIInputTokens, names.GenAIOutputTokens, names.GenAIReasoningTokens, names.GenAICacheReadInputTokens,
	} {
		known[key] = key
	}
	return known
}()

func keyOf(encoded []byte) string {
	if key, known := knownKeys[string(encoded)]; known {
		return key
	}
	return string(encoded)
}

// putAll puts all attributes of an encoded KeyValueList into a map. The last one of a key
// wins.
func putAll(dst pcommon.Map, list []byte) {
	a := wire.WalkAttributes(list)
	for a.Next() {
		setValue(dst.PutEmpty(keyOf(a.Key)), &a.Value)
	}
}

// Put puts the attributes of a stream or resource, an encoded KeyValueList, into a map. The
// last one of a key wins. It leaves out the attributes that only tokenpulse writes, because a
// sender could forge latencies and verdicts, and returns their number.
func Put(dst pcommon.Map, list []byte) (removed int) {
	a := wire.WalkAttributes(list)
	for a.Next() {
		if bytes.HasPrefix(a.Key, []byte(names.Prefix)) {
			removed++
			continue
		}
		key := keyOf(a.Key)
		value := dst.PutEmpty(key)
		setValue(value, &a.Value)
		if names.IsCategory(key) {
			toCategories(value)
		}
	}
	return removed
}

// toCategories replaces free text in a value, or in the elements of a list.
func toCategories(value pcommon.Value) {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		value.SetStr(names.Category(value.Str()))
	case pcommon.ValueTypeSlice:
		for _, element := range value.Slice().All() {
			toCategories(element)
		}
	case pcommon.ValueTypeMap, pcommon.ValueTypeBytes:
		value.SetStr(names.Other)
	}
}

// setValue sets an empty value.
func setValue(dst pcommon.Value, value *wire.Value) {
	switch value.Kind {
	case wire.StringValue:
		dst.SetStr(string(value.Bytes))
	case wire.BoolValue:
		dst.SetBool(value.Bits != 0)
	case wire.IntValue:
		dst.SetInt(int64(value.Bits))
	case wire.DoubleValue:
		dst.SetDouble(math.Float64frombits(value.Bits))
	case wire.ArrayValue:
		array := dst.SetEmptySlice()
		e := value.Elements()
		for e.Next() {
			setValue(array.AppendEmpty(), &e.Value)
		}
	case wire.MapValue:
		putAll(dst.SetEmptyMap(), value.Bytes)
	case wire.BytesValue:
		dst.SetEmptyBytes().FromRaw(value.Bytes)
	}
}
