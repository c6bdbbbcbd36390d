// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package filekind says what a file looks like that cannot be read, and what to give
// instead.
package filekind

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Other is the error of a file of a kind that cannot be read.
type Other struct{ Text string }

func (o *Other) Error() string { return o.Text }

// Error returns the error for a file with this name that begins with prefix. It says what
// was expected unless it knows a remedy.
func Error(name string, prefix []byte, expected string) error {
	looks, remedy := Of(prefix)
	return &Other{fmt.Sprintf("%s: looks like %s; %s", name, looks, cmp.Or(remedy, expected))}
}

// Of returns what a file that begins with prefix looks like, and how to get one that can be
// read, or "".
func Of(prefix []byte) (looks, remedy string) {
	for _, k := range magics {
		if bytes.HasPrefix(prefix, []byte(k.begin)) {
			return k.looks, k.remedy
		}
	}
	media, _, _ := strings.Cut(http.DetectContentType(prefix), ";")
	text := bytes.TrimSpace(bytes.TrimPrefix(prefix, []byte("\ufeff")))
	switch {
	case media == "text/html":
		return "an HTML page", ""
	case media == "text/xml":
		return "an XML file", ""
	case media != "text/plain" && media != "application/octet-stream":
		return "a file of type " + media, ""
	case media == "application/octet-stream":
		return "binary data", ""
	case len(text) == 0:
		return "an empty file", ""
	case text[0] == '{' || text[0] == '[':
		return of(documents, text, "JSON")
	default:
		return of(texts, text, "text")
	}
}

// of is Of for text that has one of the patterns.
func of(patterns []pattern, text []byte, otherwise string) (looks, remedy string) {
	for _, k := range patterns {
		if k.match.Match(text) {
			return k.looks, k.remedy
		}
	}
	if key := firstKey.FindSubmatch(text); key != nil {
		return fmt.Sprintf("%s that begins with the key %q", otherwise, key[1]), ""
	}
	return otherwise, ""
}

type magic struct{ begin, looks, remedy string }

var magics = []magic{
	{"PAR1", "a Parquet file", ""},
	{"ARROW1", "an Arrow file", ""},
	{"Obj\x01", "an Avro file", ""},
	{"SQLite format 3\x00", "an SQLite database", ""},
	{"\x7fELF", "a program", ""},
	{"PK\x03\x04", "a zip file", "unpack it first: unzip FILE"},
	{"\x1f\x8b", "a gzip file within a compressed file", "decompress it first: gunzip FILE"},
	{"\x28\xb5\x2f\xfd", "a zstd file within a compressed file", "decompress it first: zstd -d FILE"},
	{"\xfd7zXZ\x00", "an xz file", "decompress it first: xz -d FILE"},
	{"BZh", "a bzip2 file", "decompress it first: bunzip2 FILE"},
	{"\x04\x22\x4d\x18", "an LZ4 file", "decompress it first: lz4 -d FILE"},
	{"\xff\xfe", "text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"},
	{"\xfe\xff", "text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"},
}

type pattern struct {
	match         *regexp.Regexp
	looks, remedy string
}

// documents are kinds of JSON, by keys near the beginning.
var documents = []pattern{
	{
		regexp.MustCompile(`^\{\s*"tokenpulse_report"\s*:`), "a result of tokenpulse report",
		"give the files that it was made from",
	},
	{
		regexp.MustCompile(`^\{\s*"timestamp"\s*:[^{}]*"input_length"\s*:`), "a trace of a workload, which has no latencies",
		"give it to tokenpulse replay, or to --workload of tokenpulse capacity",
	},
	{
		regexp.MustCompile(`^\[\s*\{\s*"resource(Spans|Metrics|Logs)"\s*:`), "a JSON array of documents in OTLP",
		"write one document per line: jq -c '.[]' FILE",
	},
	{
		regexp.MustCompile(`(?s)^\{\s*"resource"\s*:.*"scopeSpans"\s*:`), "resource spans without the document around them",
		"write the documents: jq -c '{resourceSpans: [.]}' FILE",
	},
	{
		regexp.MustCompile(`^\{\s*"(trace"\s*:\s*\{\s*"resourceSpans|batches)"\s*:`), "a trace from Tempo in JSON",
		"request it as protobuf: curl -H 'Accept: application/protobuf' TEMPO/api/traces/ID",
	},
	{
		regexp.MustCompile(`^\{\s*"result"\s*:\s*\{\s*"resourceSpans"\s*:`), "an answer of Jaeger's API v3",
		"extract the document in OTLP: jq -c .result FILE",
	},
	{
		regexp.MustCompile(`^\{\s*"data"\s*:\s*\[\s*\{\s*"(traceID|spans)"\s*:`), "Jaeger's own JSON",
		"request the trace in OTLP: curl JAEGER/api/v3/traces/ID | jq -c .result",
	},
	{
		regexp.MustCompile(`(?s)^\[\s*\{(.*,)?\s*"(localEndpoint|traceId)"\s*:`), "Zipkin's JSON",
		"let a Collector receive it with zipkin and write it with its file exporter",
	},
	{regexp.MustCompile(`^\{\s*("[^"]*"\s*:\s*"[^"]*",\s*)*"traceEvents"\s*:`), "a profile in Chrome's trace format", ""},
}

// texts are kinds of text, by its first lines.
var texts = []pattern{
	{regexp.MustCompile(`(?m)^(receivers|processors|exporters|connectors|service):`), "a Collector config", "give it to --config"},
	{regexp.MustCompile(`(?m)^# (HELP|TYPE) [a-zA-Z_:]`), "metrics in the text format of Prometheus", ""},
	{regexp.MustCompile(`(?m)^(Resource|Scope)Spans #0`), "the output of the debug exporter", "use the file exporter of the Collector"},
	{regexp.MustCompile(`^[\w.\-/: ]+(,[\w.\-/: ]+)+\r?\n`), "a CSV file", ""},
}

// firstKey finds the first key of an object, or of that in an array. Longer keys may be text.
var firstKey = regexp.MustCompile(`^\[?\s*\{\s*"([\w.\-/]{1,40})"`)
