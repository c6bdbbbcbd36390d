package tokenstreamreceiver

import (
	"math"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// The functions below read and write the encoding of OTLP's common.proto. What is
// malformed was turned away on the way in, so those that decode know no errors.

// each calls visit for the fields of a message: with number for varints and
// fixed64, with bytes for those that have a length. It reports whether the message
// is well-formed, and stops where it is not.
func each(message []byte, visit func(num protowire.Number, kind protowire.Type, number uint64, bytes []byte)) bool {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		var number uint64
		var bytes []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(num, kind, message)
		}
		if n < 0 {
			return false
		}
		message = message[n:]
		visit(num, kind, number, bytes)
	}
	return true
}

// knownKeys holds the keys that nearly all streams have: those need no memory of
// their own.
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

// putKeyValues puts a KeyValueList's attributes into a map. Of those with the
// same key the last wins.
func putKeyValues(dst pcommon.Map, list []byte) {
	each(list, func(num protowire.Number, kind protowire.Type, _ uint64, keyValue []byte) {
		if num != 1 || kind != protowire.BytesType {
			return
		}
		var key []byte // may come after the value
		each(keyValue, func(num protowire.Number, kind protowire.Type, _ uint64, bytes []byte) {
			if num == 1 && kind == protowire.BytesType {
				key = bytes
			}
		})
		value := dst.PutEmpty(keyOf(key))
		each(keyValue, func(num protowire.Number, kind protowire.Type, _ uint64, bytes []byte) {
			if num == 2 && kind == protowire.BytesType {
				setValue(value, bytes)
			}
		})
	})
}

// setValue sets a value to what an AnyValue says.
func setValue(dst pcommon.Value, message []byte) {
	each(message, func(num protowire.Number, kind protowire.Type, number uint64, bytes []byte) {
		switch {
		case num == 1 && kind == protowire.BytesType:
			dst.SetStr(string(bytes))
		case num == 2 && kind == protowire.VarintType:
			dst.SetBool(number != 0)
		case num == 3 && kind == protowire.VarintType:
			dst.SetInt(int64(number))
		case num == 4 && kind == protowire.Fixed64Type:
			dst.SetDouble(math.Float64frombits(number))
		case num == 5 && kind == protowire.BytesType:
			appendValues(dst, bytes)
		case num == 6 && kind == protowire.BytesType:
			if dst.Type() != pcommon.ValueTypeMap {
				dst.SetEmptyMap()
			}
			putKeyValues(dst.Map(), bytes)
		case num == 7 && kind == protowire.BytesType:
			dst.SetEmptyBytes().FromRaw(bytes)
		}
	})
}

func appendValues(dst pcommon.Value, array []byte) {
	if dst.Type() != pcommon.ValueTypeSlice {
		dst.SetEmptySlice()
	}
	each(array, func(num protowire.Number, kind protowire.Type, _ uint64, bytes []byte) {
		if num == 1 && kind == protowire.BytesType {
			setValue(dst.Slice().AppendEmpty(), bytes)
		}
	})
}

// Bounds of attributes that are kept, as those of package wire.
const (
	maxAttributes = 1024 // in a list
	maxDepth      = 64
)

// encodeKeyValues encodes attributes as a KeyValueList, if they are fit to be
// kept. The bytes are those that other ways in make of the same attributes, which
// ids are derived from: pdata's own encoding has fields in another order.
func encodeKeyValues(attributes pcommon.Map) ([]byte, error) {
	return appendMap(nil, attributes, 0)
}

func appendMap(list []byte, attributes pcommon.Map, depth int) ([]byte, error) {
	if err := checkLen(attributes.Len()); err != nil {
		return nil, err
	}
	for key, value := range attributes.All() {
		if !utf8.ValidString(key) {
			return nil, malformed("an attribute's key is not valid UTF-8")
		}
		encoded, err := encodeValue(value, depth+1)
		if err != nil {
			return nil, err
		}
		keyValue := protowire.AppendTag(nil, 1, protowire.BytesType)
		keyValue = protowire.AppendString(keyValue, key)
		keyValue = appendMessage(keyValue, 2, encoded)
		list = appendMessage(list, 1, keyValue)
	}
	return list, nil
}

// encodeValue encodes an AnyValue.
func encodeValue(value pcommon.Value, depth int) (encoded []byte, err error) {
	if depth > maxDepth {
		return nil, invalid("an attribute is nested more than %d deep", maxDepth)
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		if !utf8.ValidString(value.Str()) {
			return nil, malformed("an attribute's value is not valid UTF-8")
		}
		return appendMessage(nil, 1, []byte(value.Str())), nil
	case pcommon.ValueTypeBool:
		return encodeVarint(2, protowire.EncodeBool(value.Bool())), nil
	case pcommon.ValueTypeInt:
		return encodeVarint(3, uint64(value.Int())), nil
	case pcommon.ValueTypeDouble:
		encoded = protowire.AppendTag(nil, 4, protowire.Fixed64Type)
		return protowire.AppendFixed64(encoded, math.Float64bits(value.Double())), nil
	case pcommon.ValueTypeSlice:
		if err := checkLen(value.Slice().Len()); err != nil {
			return nil, err
		}
		var array []byte
		for _, element := range value.Slice().All() {
			if encoded, err = encodeValue(element, depth+1); err != nil {
				return nil, err
			}
			array = appendMessage(array, 1, encoded)
		}
		return appendMessage(nil, 5, array), nil
	case pcommon.ValueTypeMap:
		list, err := appendMap(nil, value.Map(), depth+1)
		return appendMessage(nil, 6, list), err
	case pcommon.ValueTypeBytes:
		return appendMessage(nil, 7, value.Bytes().AsRaw()), nil
	default:
		return nil, nil
	}
}

func checkLen(count int) error {
	if count > maxAttributes {
		return invalid("more than %d attributes in one list", maxAttributes)
	}
	return nil
}

func appendMessage(dst []byte, num protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), message)
}

func encodeVarint(num protowire.Number, number uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), number)
}

func malformed(format string, args ...any) error {
	return assembly.Errorf(assembly.Malformed, format, args...)
}

func invalid(format string, args ...any) error {
	return assembly.Errorf(assembly.Invalid, format, args...)
}
