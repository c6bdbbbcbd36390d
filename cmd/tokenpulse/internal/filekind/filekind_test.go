// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package filekind

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// written returns what write writes.
func written(t *testing.T, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var content bytes.Buffer
	require.NoError(t, write(&content))
	return content.Bytes()
}

// Where a library writes the kind, the content is its own.
func TestOf_NamesTheKindAndTheRemedy(t *testing.T) {
	frame, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	inUTF16 := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(`{"resourceSpans":[]}`)) {
		inUTF16 = binary.LittleEndian.AppendUint16(inUTF16, unit)
	}
	config, err := os.ReadFile(testenv.Root(t) + "/examples/spans-to-file.yaml")
	require.NoError(t, err)
	for _, test := range []struct {
		content       []byte
		looks, remedy string
	}{
		{written(t, func(b *bytes.Buffer) error { return png.Encode(b, image.NewGray(image.Rect(0, 0, 1, 1))) }), "a file of type image/png", ""},
		{written(t, func(b *bytes.Buffer) error { return gzip.NewWriter(b).Close() }), "a gzip file within a compressed file", "decompress it first: gunzip FILE"},
		{frame.EncodeAll([]byte("x"), nil), "a zstd file within a compressed file", "decompress it first: zstd -d FILE"},
		{written(t, func(b *bytes.Buffer) error {
			z := zip.NewWriter(b)
			if _, err := z.Create("spans.jsonl"); err != nil {
				return err
			}
			return z.Close()
		}), "a zip file", "unpack it first: unzip FILE"},
		{inUTF16, "text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"},
		{[]byte("PAR1\x15\x04\x15"), "a Parquet file", ""},
		{[]byte("\xfd7zXZ\x00\x00\x04"), "an xz file", "decompress it first: xz -d FILE"},
		{[]byte("\x00\x01\x02\x03"), "binary data", ""},
		{nil, "an empty file", ""},
		{[]byte("\n\n"), "an empty file", ""},
		{[]byte("\n<!DOCTYPE html>\n<html><body>Not Found</body>"), "an HTML page", ""},
		{[]byte(`<?xml version="1.0"?><a/>`), "an XML file", ""},
		{config, "a Collector config", "give it to --config"},
		{[]byte("# HELP up Whether.\n# TYPE up gauge\nup 1\n"), "metrics in the text format of Prometheus", ""},
		{[]byte("2026-11-21T03:00:00Z\tinfo\tResourceSpans #0\nScopeSpans #0\n"), "the output of the debug exporter", "use the file exporter of the Collector"},
		{[]byte("request_id,ttft_ms,output tokens\r\nr1,12.5,100\r\n"), "a CSV file", ""},
		{[]byte("hello, world"), "text", ""},
		{[]byte(`{"tokenpulse_report":1,"groups":[]}`), "a result of tokenpulse report", "give the files that it was made from"},
		{
			[]byte(`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46]}`), "a trace of a workload, which has no latencies",
			"give it to tokenpulse replay, or to --workload of tokenpulse capacity",
		},
		{[]byte("[\n  {\n    \"resourceSpans\": []}]"), "a JSON array of documents in OTLP", "write one document per line: jq -c '.[]' FILE"},
		{[]byte(`{"resource":{"attributes":[]},"scopeSpans":[]}`), "resource spans without the document around them", "write the documents: jq -c '{resourceSpans: [.]}' FILE"},
		{[]byte(`{"batches":[{"resource":{}}]}`), "a trace from Tempo in JSON", "request it as protobuf: curl -H 'Accept: application/protobuf' TEMPO/api/traces/ID"},
		{[]byte(`{"trace":{"resourceSpans":[]}}`), "a trace from Tempo in JSON", "request it as protobuf: curl -H 'Accept: application/protobuf' TEMPO/api/traces/ID"},
		{[]byte(`{"result":{"resourceSpans":[]}}`), "an answer of Jaeger's API v3", "extract the document in OTLP: jq -c .result FILE"},
		{[]byte(`{"data":[{"traceID":"0af7651916cd43dd8448eb211c80319c","spans":[]}]}`), "Jaeger's own JSON", "request the trace in OTLP: curl JAEGER/api/v3/traces/ID | jq -c .result"},
		{[]byte(`[{"id":"352bff9a74ca9ad2","traceId":"5af7183fb1d4cf5f","name":"get"}]`), "Zipkin's JSON", "let a Collector receive it with zipkin and write it with its file exporter"},
		{[]byte(`{"displayTimeUnit":"ms","traceEvents":[]}`), "a profile in Chrome's trace format", ""},
		{[]byte(`{"benchmarks": []}`), `JSON that begins with the key "benchmarks"`, ""},
		{[]byte(`[ {"id": 1}]`), `JSON that begins with the key "id"`, ""},
		{[]byte(`{"Tell me about our unreleased product": 1}`), "JSON", ""},
		{[]byte(`[1, 2]`), "JSON", ""},
	} {
		looks, remedy := Of(test.content)
		require.Equal(t, test.looks, looks, "%.60q", test.content)
		require.Equal(t, test.remedy, remedy, "%.60q", test.content)
	}
}

func TestError_GivesTheRemedyOrWhatWasExpected(t *testing.T) {
	require.EqualError(t, Error("a.pq", []byte("PAR1"), "expected spans"), "a.pq: looks like a Parquet file; expected spans")
	require.EqualError(t, Error("a.yaml", []byte("exporters:\n"), "expected spans"), "a.yaml: looks like a Collector config; give it to --config")
}

// Patterns are matched against a prefix that anyone may have written.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`[{"traceId":"`))
	f.Add([]byte(strings.Repeat("a,", 2000)))
	f.Fuzz(func(t *testing.T, prefix []byte) {
		looks, _ := Of(prefix)
		require.NotEmpty(t, looks)
	})
}
