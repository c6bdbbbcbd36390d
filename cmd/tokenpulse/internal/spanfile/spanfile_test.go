// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is what Read found in a file.
type outcome struct {
	messages []string // as the file exporter writes them in JSON
	damaged  []string
	counts   Counts
	err      error
}

// read reads a file with this content. Messages are encoded only at the end, so that one which shares memory with a later one is found.
func read(t testing.TB, content []byte) outcome {
	t.Helper()
	return readLimited(t, content, maxMessageBytes)
}

func readLimited(t testing.TB, content []byte, limit int) (o outcome) {
	t.Helper()
	var all []ptrace.Traces
	r := reader{ctx: t.Context(), file: openfile.New(t.Context(), "file", bytes.NewReader(content), nil), limit: limit, sink: Sink{
		Traces:  func(traces ptrace.Traces) error { all = append(all, traces); return nil },
		Damaged: func(err error) error { o.damaged = append(o.damaged, err.Error()); return nil },
	}}
	o.err = r.read()
	o.counts = r.counts
	for _, traces := range all {
		encoded, err := new(ptrace.JSONMarshaler).MarshalTraces(traces)
		require.NoError(t, err)
		o.messages = append(o.messages, string(encoded))
	}
	require.Len(t, o.messages, o.counts.Traces)
	require.Len(t, o.damaged, o.counts.Damaged)
	return o
}

// recorded returns a file of testdata.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return content
}

// linesWithSpans returns the messages with spans of a file in JSON lines.
func linesWithSpans(content []byte) (lines []string) {
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, `{"resourceSpans"`) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// inProtobuf encodes messages in JSON as protobuf.
func inProtobuf(t testing.TB, messages []string) (encoded [][]byte) {
	t.Helper()
	for _, message := range messages {
		traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(message))
		require.NoError(t, err)
		b, err := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
		require.NoError(t, err)
		encoded = append(encoded, b)
	}
	return encoded
}

// prefixed writes messages as the file exporter does with format proto: each after four bytes with its length, big endian.
func prefixed(messages ...[]byte) (file []byte) {
	for _, message := range messages {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(message))), message...)
	}
	return file
}

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return zipped.Bytes()
}

func zstandard(t testing.TB, content []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(content, nil)
}

// unzstandard decompresses all frames.
func unzstandard(t testing.TB, content []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	defer r.Close()
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

func TestRead_FindsTheSameSpansInEachFormatOfTheFileExporter(t *testing.T) {
	lines, native := recorded(t, "json.jsonl"), unzstandard(t, recorded(t, "native/json-zstd.bin"))
	for name, written := range map[string][]byte{
		"json.jsonl": lines, "proto.bin": lines, "json-zstd.bin": lines, "proto-zstd.bin": lines,
		"native/json-zstd.bin": native, "native/proto-zstd.bin": native,
	} {
		expected := linesWithSpans(written)
		require.GreaterOrEqual(t, len(expected), 6, "testdata/README.md states the numbers")
		content := recorded(t, name)
		for compression, content := range map[string][]byte{
			"as written":          content,
			"compressed by gzip":  gzipped(t, content),
			"compressed by zstd":  zstandard(t, content),
			"in two gzip members": append(gzipped(t, content[:1000]), gzipped(t, content[1000:])...),
		} {
			if strings.HasPrefix(name, "native") && compression != "as written" {
				continue // it is compressed already
			}
			got := read(t, content)
			require.NoError(t, got.err, "%s %s", name, compression)
			require.Empty(t, got.damaged, "%s %s", name, compression)
			require.Equal(t, expected, got.messages, "%s %s", name, compression)
			require.Equal(t, Counts{Traces: len(expected), Other: 2}, got.counts, "%s %s", name, compression)
		}
	}
}

// A file of a request, as curl --data-binary posts it.
func TestRead_TakesEachResourceOfABareRequestForAMessage(t *testing.T) {
	expected := linesWithSpans(recorded(t, "json.jsonl"))
	request := bytes.Join(inProtobuf(t, expected), nil) // repeated fields concatenate
	whole, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(request)
	require.NoError(t, err)
	require.Equal(t, 6, whole.ResourceSpans().Len())
	for _, content := range [][]byte{request, gzipped(t, request), zstandard(t, request)} {
		got := read(t, content)
		require.NoError(t, got.err)
		require.Equal(t, expected, got.messages)
		require.Empty(t, got.damaged)
	}
}

// The lengths are the bytes of a line feed, of white space and of a brace.
func TestRead_KeepsProtobufThatBeginsLikeText(t *testing.T) {
	for _, size := range []int{0x0a, 0x20, '{', 0x0a<<7 | 0x0a} {
		traces, encoded := ptrace.NewTraces(), []byte{0, 0}
		resource := traces.ResourceSpans().AppendEmpty()
		for length := uint64(0); length != uint64(size); length, _ = protowire.ConsumeVarint(encoded[1:]) {
			resource.SetSchemaUrl(resource.SchemaUrl() + " ")
			var err error
			encoded, err = new(ptrace.ProtoMarshaler).MarshalTraces(traces)
			require.NoError(t, err)
		}
		expected, err := new(ptrace.JSONMarshaler).MarshalTraces(traces)
		require.NoError(t, err)
		require.Equal(t, []string{string(expected)}, read(t, encoded).messages, "bare, %d bytes", size)
		require.Equal(t, []string{string(expected)}, read(t, prefixed(encoded)).messages, "after the length, %d bytes", size)
	}
}

func TestRead_FindsDocumentsOverSeveralLines(t *testing.T) {
	lines := linesWithSpans(recorded(t, "json.jsonl"))[:3]
	indent := func(with string) (pretty []string) {
		for _, line := range lines {
			var indented bytes.Buffer
			require.NoError(t, json.Indent(&indented, []byte(line), "", with))
			pretty = append(pretty, indented.String())
		}
		return pretty
	}
	spaced := strings.ReplaceAll(lines[1], `{"resourceSpans":[`, "  { \"resourceSpans\" : [")
	for name, content := range map[string]string{
		"indented by spaces":        strings.Join(indent("  "), "\n"),
		"indented by tabs":          strings.Join(indent("\t"), "\n\n"),
		"not indented":              strings.Join(indent(""), "\n"),
		"with carriage returns":     strings.ReplaceAll(strings.Join(indent(" "), "\n"), "\n", "\r\n"),
		"one after the other":       strings.Join(indent(" "), ""),
		"on one line":               strings.Join(lines, ""),
		"on one line, with spaces":  strings.Join(lines, " "),
		"some over several lines":   lines[0] + "\n" + indent(" ")[1] + "\n" + lines[2],
		"with a byte order mark":    "\ufeff" + strings.Join(lines, "\n"),
		"with blank lines":          "\n \n" + strings.Join(lines, "\n\n\t\n") + "\n\n",
		"after blank lines":         "\n\n\n\n\n" + strings.Join(lines, "\n"), // which could be a tag, two lengths and a tag of protobuf
		"with white space":          lines[0] + "\n" + spaced + "\n" + lines[2],
		"broken after an attribute": strings.ReplaceAll(strings.Join(lines, "\n"), `]}`, "]}\n"),
	} {
		got := read(t, []byte(content))
		require.NoError(t, got.err, name)
		require.Empty(t, got.damaged, name)
		require.Equal(t, lines, got.messages, name)
	}
}

func TestRead_KeepsBracketsInStrings(t *testing.T) {
	const attribute = `{"key":"k","value":{"stringValue":"%"}}`
	for _, text := range []string{`}{`, `]}`, `{"`, `\"}{\"`, `\\`, `\\\"{`, `{\"resourceSpans\":[`, `\u007b`} {
		text, err := json.Marshal(text)
		require.NoError(t, err)
		line := `{"resourceSpans":[{"resource":{"attributes":[` + strings.ReplaceAll(attribute, `"%"`, string(text)) + `]}}]}`
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, []byte(line), "", " "))
		got := read(t, []byte(line+"\n"+line+line+"\n"+pretty.String()))
		require.Len(t, got.messages, 4, "%s", text)
		require.Empty(t, got.damaged, "%s", text)
	}
}

func TestRead_SkipsOtherSignals(t *testing.T) {
	const metrics, logs, spans = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m"}]}]}]}`, `{ "resourceLogs" : [] }`, `{"resourceSpans":[]}`
	got := read(t, []byte(strings.Join([]string{metrics, spans, logs, `{}`, `{"resourceProfiles":[]}`}, "\n")))
	require.NoError(t, got.err)
	require.Equal(t, Counts{Traces: 2, Other: 3}, got.counts)

	got = read(t, []byte(metrics+"\n"+logs))
	require.EqualError(t, got.err, "file: has only metrics, logs or profiles in OTLP; give the file of a file exporter in a traces pipeline")
	require.Equal(t, Counts{Other: 2}, got.counts)

	got = read(t, []byte(metrics+"\n"+spans[:18])) // the damaged message may have had spans
	require.NoError(t, got.err)
	require.Equal(t, Counts{Other: 1, Damaged: 1}, got.counts)
}

func TestRead_AcceptsAFileWithoutMessages(t *testing.T) {
	for _, content := range []string{"", "\n", " \r\n\n"} {
		got := read(t, []byte(content))
		require.NoError(t, got.err)
		require.Zero(t, got.counts)
	}
	require.NoError(t, read(t, gzipped(t, nil)).err)
}

func TestRead_NamesAFileOfAnotherKind(t *testing.T) {
	for content, expected := range map[string]string{
		"PAR1\x15\x04":          "file: looks like a Parquet file; expected spans in OTLP (JSON lines or protobuf of the Collector's file exporter), token events, or results of a benchmark",
		"receivers:\n  otlp:\n": "file: looks like a Collector config; give it to --config",
	} {
		got := read(t, []byte(content))
		require.EqualError(t, got.err, expected)
		require.Zero(t, got.counts)
	}
}

func TestRead_EndsWithTheErrorOfTheSink(t *testing.T) {
	failed := errors.New("failed")
	lines := strings.Join(linesWithSpans(recorded(t, "json.jsonl")), "\n")
	for name, test := range map[string]struct {
		content  string
		sink     Sink
		expected Counts
	}{
		"Traces":               {lines, Sink{Traces: func(ptrace.Traces) error { return failed }}, Counts{Traces: 1}},
		"Damaged by a line":    {"{\"resourceSpans\":[\n{\"resourceSpans\":[\"\n" + lines, Sink{Damaged: func(error) error { return failed }}, Counts{Damaged: 1}},
		"Damaged by a message": {string(prefixed([]byte("\n\x04\x12\x02\x0a\x09"), nil)), Sink{Damaged: func(error) error { return failed }}, Counts{Damaged: 1}},
	} {
		counts, err := Read(t.Context(), openfile.New(t.Context(), "file", strings.NewReader(test.content), nil), test.sink)
		require.Equal(t, failed, err, name)
		require.Equal(t, test.expected, counts, name)
	}
}

func TestRead_StopsBetweenMessagesIfTheContextIsCancelled(t *testing.T) {
	lines := linesWithSpans(recorded(t, "json.jsonl"))
	for name, content := range map[string][]byte{
		"JSON lines": []byte(strings.Join(lines, "\n")), "length and message": prefixed(inProtobuf(t, lines)...), "bare": bytes.Join(inProtobuf(t, lines), nil),
	} {
		ctx, cancel := context.WithCancel(t.Context())
		got := 0
		sink := Sink{Traces: func(ptrace.Traces) error {
			if got++; got == 2 {
				cancel()
			}
			return nil
		}}
		counts, err := Read(ctx, openfile.New(ctx, "file", bytes.NewReader(content), nil), sink)
		require.ErrorIs(t, err, context.Canceled, name)
		require.Equal(t, Counts{Traces: 2}, counts, name)
	}
}

// The part of a message that a cancelled read cuts is no damage.
func TestRead_StopsWithinAMessageOfAPipe(t *testing.T) {
	line := linesWithSpans(recorded(t, "json.jsonl"))[0]
	messages := inProtobuf(t, []string{line, line, line, line})
	for name, content := range map[string][]byte{
		"JSON lines": []byte(line + "\n" + line[:2000]), "length and message": prefixed(messages...)[:5000], "bare": bytes.Join(messages, nil)[:5000],
	} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		_, err = w.Write(content)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		sink := Sink{
			Traces:  func(ptrace.Traces) error { time.AfterFunc(50*time.Millisecond, cancel); return nil }, // while the next read blocks
			Damaged: func(err error) error { return err },
		}
		counts, err := Read(ctx, openfile.New(ctx, "pipe", r, nil), sink)
		require.ErrorIs(t, err, context.Canceled, name)
		require.Positive(t, counts.Traces, name)
		require.Zero(t, counts.Damaged, name)
		require.NoError(t, w.Close())
		require.NoError(t, r.Close())
	}
}
