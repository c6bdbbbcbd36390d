// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

const chunkLine = `{"event":"chunk","stream_id":"stream-1","time_unix_nano":"1795233292181556000","tokens":1,"channel":"content"}`

func TestChunkLine_AllocatesNothing(t *testing.T) {
	batch := newStore().NewBatch()
	var decoder NDJSON
	for name, line := range map[string]string{
		"as documented":     chunkLine,
		"with skipped text": strings.Replace(chunkLine, `"tokens"`, `"text":"a \"quoted\" ü","tokens"`, 1),
		"with RFC 3339":     `{"event":"chunk","stream_id":"stream-1","time":"2026-11-21T03:54:52.181556Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			line := []byte(line)
			decode := func() {
				batch.Reset()
				if err := decoder.Decode(line, 1, batch); err != nil {
					t.Fatal(err)
				}
			}
			decode()
			// The batch allocates one: the ID of a new stream.
			require.LessOrEqual(t, testing.AllocsPerRun(100, decode), 1.0)
		})
	}
}

func TestNDJSON_AttributesOfEveryType(t *testing.T) {
	const object = `{"s":"q\"ü😀","t":true,"f":false,"n":null,"i":-12,"big":9223372036854775807,"d":1.5,"e":1e3,"huge":18446744073709551616,"list":[1,"x",[],{}],"map":{"a":{"b":[null]}},"":"empty"}`
	var decoder NDJSON
	batch := newStore().NewBatch()
	line := fmt.Sprintf(`{ "event" : "start" , "stream_id":"s", "time_unix_nano":1795233292181556000, "attributes": %s }`, object)
	require.NoError(t, decoder.Decode([]byte(line), 1, batch))
	part, err := batch.Part([]byte("s"))
	require.NoError(t, err)
	var got commonv1.KeyValueList
	require.NoError(t, proto.Unmarshal(part.Attributes, &got))
	want := `{"values":[
		{"key":"s","value":{"stringValue":"q\"ü😀"}}, {"key":"t","value":{"boolValue":true}}, {"key":"f","value":{"boolValue":false}},
		{"key":"n","value":{}}, {"key":"i","value":{"intValue":"-12"}}, {"key":"big","value":{"intValue":"9223372036854775807"}},
		{"key":"d","value":{"doubleValue":1.5}}, {"key":"e","value":{"doubleValue":1000}}, {"key":"huge","value":{"doubleValue":18446744073709551616}},
		{"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"x"},{"arrayValue":{}},{"kvlistValue":{}}]}}},
		{"key":"map","value":{"kvlistValue":{"values":[{"key":"a","value":{"kvlistValue":{"values":[{"key":"b","value":{"arrayValue":{"values":[{}]}}}]}}}]}}},
		{"value":{"stringValue":"empty"}}]}`
	gotJSON, err := protojson.Marshal(&got)
	require.NoError(t, err)
	require.JSONEq(t, want, string(gotJSON))
}

func TestNDJSON_RejectsOtherNumbers(t *testing.T) {
	for number, described := range map[string]string{
		`""`: "a 0-byte string", `" "`: "a 1-byte string", `"1 "`: "a 2-byte string", `"-1"`: "a 2-byte string", `"1x"`: "a 2-byte string",
		`-1`: "-1", `1.0`: "1.0", `1e3`: "1e3", `12345678901234567890`: "12345678901234567890", `"00000000000000000001"`: "a 20-byte string",
		`-` + strings.Repeat("1", 40): "-" + strings.Repeat("1", 31) + "...", `true`: "true", `{"a":1}`: "an object", `["a"]`: "an array",
	} {
		for name, remedy := range map[string]string{
			"time_unix_nano": "send a positive integer, or a string of its decimal digits",
			"tokens":         "send an integer from 0 to 1048576",
			"seq":            "send an integer from 0",
		} {
			line := `{"event":"chunk","stream_id":"s"`
			if name != "time_unix_nano" {
				line += `,"time_unix_nano":1795233292181556000`
			}
			line += `,"` + name + `":` + number + `}`
			var decoder NDJSON
			err := decoder.Decode([]byte(line), 1, newStore().NewBatch())
			require.EqualError(t, err, "`"+name+"` is "+described+"; "+remedy, number)
		}
	}
}

// The scanner and encoding/json agree on what is JSON, except for skipped members:
// the scanner does not search them for duplicate names and lone surrogates.
func FuzzNDJSON(f *testing.F) {
	for _, seed := range []string{
		chunkLine, `{}`, `{"a":-0.5e+3,"b":[1,{"c":"\u00e9\n"}],"d":null}`, `{"event":"end","stream_id":"s","usage":{"output_tokens":3},"cancelled":true}`,
		`{"a":01}`, `{"a":"` + "\x01" + `"}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":tru}`, "{\"\xff\":1}", `{"a":"\ud800"}`, ` {"a" : [ ] } `, `{"a":[1,]}`, `{"a":{"b" 1}}`, `{"a":[}`, `{"resource":{"a":1,"a":2}}`, `{"event":"start","stream_id":"s","time_unix_nano":1795233292181556000,"attributes":{"a":[1,[2]]},"resource":{"b":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var decoder NDJSON
		err := decoder.Decode(line, 1, newStore().NewBatch())
		scanned := err == nil || assembly.ReasonOf(err) != assembly.Malformed
		if scanned {
			require.True(t, json.Valid(line), "accepted: %q", line)
			require.True(t, utf8.Valid(line), "accepted: %q", line)
		}
		object := len(strings.TrimLeft(string(line), " \t\r\n")) > 0 && strings.TrimLeft(string(line), " \t\r\n")[0] == '{'
		if object && jsontext.Value(line).IsValid() {
			require.True(t, scanned, "rejected: %q: %v", line, err)
		}
	})
}

func BenchmarkChunkLine(b *testing.B) {
	batch := newStore().NewBatch()
	var decoder NDJSON
	line := []byte(strings.Replace(chunkLine, `"tokens":1`, `"tokens":0`, 1))
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	accepted := 0
	for b.Loop() {
		if err := decoder.Decode(line, 1, batch); err != nil {
			b.Fatal(err)
		}
		accepted++
	}
	require.Equal(b, accepted, batch.Events())
}
