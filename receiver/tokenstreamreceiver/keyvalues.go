package tokenstreamreceiver

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"
)

// The functions below decode OTLP's common.proto from its encoding. What is
// malformed was turned away on the way in, so they know no errors.

// each calls visit for the fields of a message: with number for varints and
// fixed64, with bytes for those that have a length.
func each(message []byte, visit func(num protowire.Number, kind protowire.Type, number uint64, bytes []byte)) {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
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
			return
		}
		message = message[n:]
		visit(num, kind, number, bytes)
	}
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
		value := dst.PutEmpty(string(key))
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
