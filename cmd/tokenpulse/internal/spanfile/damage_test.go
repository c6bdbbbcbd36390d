// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/openfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// short returns messages that are short enough to try each of their bytes.
func short(t testing.TB) []string {
	t.Helper()
	var messages []string
	for i, model := range []string{"m", "prompt", "longer"} {
		traces := ptrace.NewTraces()
		resource := traces.ResourceSpans().AppendEmpty()
		resource.Resource().Attributes().PutStr("service.name", "s")
		span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{1, 2, byte(i)})
		span.SetSpanID([8]byte{3, 4, byte(i)})
		span.SetStartTimestamp(1795233292481556000)
		span.Attributes().PutStr("gen_ai.request.model", model)
		span.Attributes().PutEmptySlice("list").AppendEmpty().SetDouble(0.5)
		message, err := new(ptrace.JSONMarshaler).MarshalTraces(traces)
		require.NoError(t, err)
		messages = append(messages, string(message))
	}
	return messages
}

// file is a file with messages, and where each of them is.
type file struct {
	content      []byte
	begins, ends []int
	places       []string // as in errors
}

// formats returns files with the messages in each format.
func formats(t testing.TB, messages []string) map[string]file {
	t.Helper()
	lines := func(encode func(string) string) (f file) {
		for _, message := range messages {
			f.places = append(f.places, fmt.Sprintf("file:%d: ", 1+bytes.Count(f.content, []byte("\n"))))
			f.begins = append(f.begins, len(f.content))
			f.content = append(f.content, encode(message)...)
			f.ends = append(f.ends, len(f.content))
			f.content = append(f.content, '\n')
		}
		return f
	}
	numbered := func(messages [][]byte, encode func([]byte) []byte) (f file) {
		for i, message := range messages {
			f.places = append(f.places, fmt.Sprintf("file: message %d: ", i+1))
			f.begins = append(f.begins, len(f.content))
			f.content = append(f.content, encode(message)...)
			f.ends = append(f.ends, len(f.content))
		}
		return f
	}
	inProto := inProtobuf(t, messages)
	var inJSON [][]byte
	for _, message := range messages {
		inJSON = append(inJSON, []byte(message))
	}
	compressed := func(b []byte) []byte { return prefixed(zstandard(t, b)) }
	return map[string]file{
		"JSON lines": lines(func(message string) string { return message }),
		"indented JSON": lines(func(message string) string {
			var indented bytes.Buffer
			require.NoError(t, json.Indent(&indented, []byte(message), "", " "))
			return indented.String()
		}),
		"protobuf":            numbered(inProto, func(b []byte) []byte { return prefixed(b) }),
		"bare protobuf":       numbered(inProto, func(b []byte) []byte { return b }),
		"compressed JSON":     numbered(inJSON, compressed),
		"compressed protobuf": numbered(inProto, compressed),
	}
}

// at returns how many messages end before a byte of the file, and whether the byte is within the next one.
func (f *file) at(offset int) (whole int, within bool) {
	for whole < len(f.ends) && f.ends[whole] <= offset {
		whole++
	}
	return whole, whole < len(f.ends) && f.begins[whole] < offset
}

func TestRead_KeepsTheMessagesBeforeTheEndOfACutFile(t *testing.T) {
	messages := short(t)
	for format, file := range formats(t, messages) {
		for cut := range file.content {
			content := file.content[:cut]
			whole, within := file.at(cut)
			got := read(t, content)
			require.NoError(t, got.err, "%s cut at %d", format, cut)
			require.Equal(t, messages[:whole], append([]string{}, got.messages...), "%s cut at %d", format, cut)
			if !within || len(bytes.TrimSpace(content)) == 0 {
				require.Empty(t, got.damaged, "%s cut at %d", format, cut)
				continue
			}
			require.Len(t, got.damaged, 1, "%s cut at %d", format, cut)
			require.True(t, strings.HasPrefix(got.damaged[0], file.places[whole]), "%s cut at %d: %s", format, cut, got.damaged[0])
		}
	}
}

// A compressed file that is cut gives the messages of the blocks that are whole. gzip ends a block with each flush.
func TestRead_KeepsTheMessagesOfACutCompressedFile(t *testing.T) {
	messages := short(t)
	for format, file := range formats(t, messages) {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		var flushed []int
		for i, end := range file.ends {
			_, err := w.Write(file.content[file.begins[i]:end])
			require.NoError(t, err)
			if strings.Contains(format, "JSON") && !strings.Contains(format, "compressed") {
				_, err = io.WriteString(w, "\n")
				require.NoError(t, err)
			}
			require.NoError(t, w.Flush())
			flushed = append(flushed, zipped.Len())
		}
		require.NoError(t, w.Close())
		for cut := 2; cut < zipped.Len(); cut++ { // before, it is not gzip
			got := read(t, zipped.Bytes()[:cut])
			require.NoError(t, got.err, "%s cut at %d", format, cut)
			whole := 0
			for whole < len(flushed) && flushed[whole] <= cut {
				whole++
			}
			require.GreaterOrEqual(t, len(got.messages), whole, "%s cut at %d", format, cut)
			require.Equal(t, messages[:len(got.messages)], append([]string{}, got.messages...), "%s cut at %d", format, cut)
			require.Len(t, got.damaged, 1, "%s cut at %d", format, cut)
			require.Contains(t, got.damaged[0], "the gzip data is damaged or ends early: ", "%s cut at %d", format, cut)
		}
	}
}

// A changed byte may change a message to another one, but damages no others, unless it is in a length.
func TestRead_KeepsTheMessagesAroundAChangedByte(t *testing.T) {
	messages := short(t)
	files := formats(t, messages)
	delete(files, "indented JSON") // where a document with a brace more ends only at the end of the file
	for format, file := range files {
		begin := file.begins[1]
		if format != "JSON lines" {
			begin += lengthBytes
		}
		for offset := begin; offset < file.ends[1]; offset++ {
			for _, with := range []byte("\x00\n\"\\}{x\xff") {
				content := slices.Clone(file.content)
				content[offset] = with
				got := read(t, content)
				require.NoError(t, got.err, "%s with %q at %d", format, with, offset)
				require.Contains(t, got.messages, messages[0], "%s with %q at %d", format, with, offset)
				require.Contains(t, got.messages, messages[2], "%s with %q at %d", format, with, offset)
				require.GreaterOrEqual(t, len(got.messages)+len(got.damaged), 3, "%s with %q at %d", format, with, offset)
			}
		}
	}
}

// A Collector that was killed leaves a part of a message. The next one appends to it, or begins a new line.
func TestRead_FindsTheMessageAfterAPart(t *testing.T) {
	messages := short(t)
	for cut := 1; cut < len(messages[1]); cut++ {
		for _, separator := range []string{"", "\n"} {
			got := read(t, []byte(messages[0]+"\n"+messages[1][:cut]+separator+messages[2]+"\n"+messages[0]))
			require.NoError(t, got.err)
			require.Equal(t, []string{messages[0], messages[2], messages[0]}, got.messages, "cut at %d, %q", cut, separator)
			require.Len(t, got.damaged, 1, "cut at %d, %q", cut, separator)
			require.True(t, strings.HasPrefix(got.damaged[0], "file:2: "), "cut at %d, %q: %s", cut, separator, got.damaged[0])
		}
		// A rotation by copytruncate may leave the end of a line.
		got := read(t, []byte(messages[1][cut:]+"\n"+messages[2]))
		require.NoError(t, got.err)
		require.Equal(t, messages[2], got.messages[len(got.messages)-1], "begins at %d", cut) // after a part like {}
		require.Len(t, got.damaged, 1, "begins at %d", cut)
	}
}

func TestRead_SaysWhatIsDamaged(t *testing.T) {
	spans := `{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}`
	whole := strings.ReplaceAll(spans, "%s", "{}")
	for content, expected := range map[string]string{
		"# comment":                                           "file:2: not a JSON object; expected one document in OTLP per line",
		`{"traces":[]}`:                                       `file:2: the JSON document has no "resourceSpans"`,
		`{"resourceSpans":[{x}]}`:                             "file:2: invalid JSON at byte 20: invalid character 'x' looking for beginning of object key string",
		`{"resourceSpans":[{"scopeSpans`:                      "file:2: the JSON document is incomplete",
		strings.ReplaceAll(spans, "%s", `1`):                  "file:2: the JSON document is not in OTLP: a field has a value of another type",
		strings.ReplaceAll(spans, "%s", `{"traceId":"0af7"}`): "file:2: the JSON document is not in OTLP: a field has a value of another type",
	} {
		got := read(t, []byte(whole+"\n"+content+"\n"+whole))
		require.NoError(t, got.err)
		require.Equal(t, []string{expected}, got.damaged)
		require.Equal(t, Counts{Traces: 2, Damaged: 1}, got.counts)
	}

	message := inProtobuf(t, []string{whole})[0]
	wrong := bytes.Clone(message)
	wrong[0] = 0x09
	bomb := zstandard(t, bytes.Repeat([]byte{'\n'}, maxMessageBytes+1))
	for expected, damaged := range map[string][]byte{
		"file: message 2: no spans in protobuf: proto: wrong wireType = 1 for field ResourceSpans":                                          wrong,
		"file: message 2: the zstd data is damaged: unexpected EOF":                                                                         zstandard(t, message)[:8],
		"file: message 2: the message is larger than 64 MiB; write fewer spans at once, as with send_batch_max_size of the batch processor": bomb,
		"file: message 2: invalid JSON at byte 20: invalid character 'x' looking for beginning of object key string":                        zstandard(t, []byte(`{"resourceSpans":[{x}]}`)),
	} {
		got := read(t, prefixed(message, damaged, message))
		require.NoError(t, got.err)
		require.Equal(t, []string{expected}, got.damaged)
		require.Equal(t, Counts{Traces: 2, Damaged: 1}, got.counts)
	}

	got := read(t, append(slices.Clone(message), wrong...))
	require.Equal(t, []string{"file: message 2: no resource spans in protobuf begin here; the rest of the file is skipped"}, got.damaged)
}

// What pdata says of a damaged document quotes it.
func TestRead_QuotesNoText(t *testing.T) {
	line := strings.ReplaceAll(short(t)[1], `"stringValue":"prompt"`, `"stringValue":"aaaaaaaaaaaaaaaaaaaa","boolValue":"bbbbbbbbbb"`)
	for offset := range line {
		for _, with := range "x\"]1" {
			for _, damaged := range read(t, []byte(line[:offset]+string(with)+line[offset+1:])).damaged {
				require.NotContains(t, damaged, "aa", "%q at %d", with, offset)
				require.NotContains(t, damaged, "bb", "%q at %d", with, offset)
			}
		}
	}
}

// padded returns a message whose encoding has this size.
func padded(t *testing.T, size int, encode func(ptrace.Traces) []byte) []byte {
	t.Helper()
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.SetSchemaUrl(strings.Repeat("s", size/2))
	resource.SetSchemaUrl(strings.Repeat("s", size-(len(encode(traces))-size/2)))
	encoded := encode(traces)
	require.Len(t, encoded, size)
	return encoded
}

func TestRead_LimitsTheSizeOfAMessage(t *testing.T) {
	const limit = 300_000 // more than the buffers
	inJSON := func(traces ptrace.Traces) []byte {
		encoded, err := new(ptrace.JSONMarshaler).MarshalTraces(traces)
		require.NoError(t, err)
		return encoded
	}
	inProto := func(traces ptrace.Traces) []byte {
		encoded, err := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
		require.NoError(t, err)
		return encoded
	}
	field := func(size int) []byte { return padded(t, size+1+3, inProto) } // with tag and length
	line := func(size int) []byte { return append(padded(t, size-1, inJSON), '\n') }
	indented := func(size int) []byte {
		return append(append([]byte("{\n"), padded(t, size-1, inJSON)[1:]...), '\n')
	}
	for name, test := range map[string]struct {
		small, atLimit, above []byte
		place                 string
	}{
		"a line":              {line(100), line(limit), line(limit + 1), "file:3"},
		"several lines":       {indented(100), indented(limit), indented(limit + 1), "file:5"},
		"protobuf":            {prefixed(padded(t, 100, inProto)), prefixed(padded(t, limit, inProto)), prefixed(padded(t, limit+1, inProto)), "file: message 3"},
		"bare protobuf":       {padded(t, 100, inProto), field(limit), field(limit + 1), "file: message 3"},
		"compressed protobuf": {prefixed(zstandard(t, padded(t, 100, inProto))), prefixed(zstandard(t, padded(t, limit, inProto))), prefixed(zstandard(t, padded(t, limit+1, inProto))), "file: message 3"},
		"compressed JSON":     {prefixed(zstandard(t, padded(t, 100, inJSON))), prefixed(zstandard(t, padded(t, limit, inJSON))), prefixed(zstandard(t, padded(t, limit+1, inJSON))), "file: message 3"},
	} {
		got := readLimited(t, slices.Concat(test.small, test.atLimit, test.above, test.small), limit)
		require.NoError(t, got.err, name)
		require.Equal(t, []string{test.place + ": the message is larger than 64 MiB; write fewer spans at once, as with send_batch_max_size of the batch processor"}, got.damaged, name)
		require.Len(t, got.messages, 3, name)
	}
}

// nested returns a message in protobuf whose attribute has so many lists within lists.
func nested(levels int) []byte {
	var reversed []byte // since each length precedes what it is of
	enter := func(tag byte) {
		size := protowire.AppendVarint(nil, uint64(len(reversed)))
		slices.Reverse(size)
		reversed = append(append(reversed, size...), tag)
	}
	for range levels {
		enter(1<<3 | 2) // values
		enter(5<<3 | 2) // array_value
	}
	enter(2<<3 | 2) // value of a KeyValue
	enter(1<<3 | 2) // attributes of a Resource
	enter(1<<3 | 2) // resource
	enter(1<<3 | 2) // resource_spans
	slices.Reverse(reversed)
	return reversed
}

// The deepest of these messages would end the process: "goroutine stack exceeds 1000000000-byte limit".
func TestRead_LimitsTheDepthOfALargeMessage(t *testing.T) {
	inJSON := func(levels, padding int) []byte {
		const document = `{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":%s{}%s}]}}%s]}` + "\n"
		return fmt.Appendf(nil, document, strings.Repeat(`{"arrayValue":{"values":[`, levels), strings.Repeat(`]}}`, levels), strings.Repeat(" ", padding))
	}
	inProto := func(levels, padding int) []byte {
		resource := ptrace.NewTraces()
		resource.ResourceSpans().AppendEmpty().SetSchemaUrl(strings.Repeat(" ", padding))
		second, err := new(ptrace.ProtoMarshaler).MarshalTraces(resource)
		require.NoError(t, err)
		return prefixed(append(nested(levels), second...))
	}
	for place, message := range map[string]func(levels, padding int) []byte{"file:2": inJSON, "file: message 2": inProto} {
		for levels, padding := range map[int]int{100_000: 0, 600: shallowBytes, 2_300_000 / max(1, testenv.RaceSlowdown/2): 0} {
			shallow := message(100, shallowBytes)
			got := read(t, slices.Concat(shallow, message(levels, padding), shallow))
			require.NoError(t, got.err)
			if levels == 100_000 {
				require.Equal(t, Counts{Traces: 3}, got.counts, "%s: %d levels", place, levels)
				continue
			}
			require.Equal(t, Counts{Traces: 2, Damaged: 1}, got.counts, "%s: %d levels", place, levels)
			require.Equal(t, []string{place + ": the message has attributes within attributes that are too deep"}, got.damaged)
		}
	}
}

// repeated reads a text over and over, so many bytes.
func repeated(text string, size int64) io.Reader {
	return io.LimitReader(&repeater{text: text}, size)
}

type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (n int, err error) {
	for n < len(p) {
		copied := copy(p[n:], r.text[r.at:])
		n, r.at = n+copied, (r.at+copied)%len(r.text)
	}
	return n, nil
}

func TestRead_BoundsTheMemoryForAnEndlessMessage(t *testing.T) {
	const size = 32 << 20 // of the file; a message has at most 1 MiB
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := io.WriteString(w, `{"resourceSpans":[`)
	require.NoError(t, err)
	_, err = io.Copy(w, repeated(strings.Repeat("{},", 1000), size))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for name, source := range map[string]io.Reader{
		"a line":        io.MultiReader(strings.NewReader(`{"resourceSpans":["`), repeated(strings.Repeat("x", 4096), size)),
		"lines":         io.MultiReader(strings.NewReader(`{"resourceSpans":[`), repeated(strings.Repeat(" {},", 100)+"\n", size)),
		"protobuf":      io.MultiReader(bytes.NewReader([]byte{0, 0, 0, 4, '\n', 2, 10, 0, 0x20, 0, 0, 0}), repeated(strings.Repeat("\x00", 4096), size)),
		"bare protobuf": io.MultiReader(bytes.NewReader([]byte{'\n', 2, 10, 0, '\n', 0xff, 0xff, 0xff, 0x7f}), repeated(strings.Repeat("\x00", 4096), size)),
		"bomb of gzip":  &zipped,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := reader{ctx: t.Context(), file: openfile.New(t.Context(), "file", source, nil), limit: 1 << 20, sink: Sink{
				Traces: func(ptrace.Traces) error { return nil }, Damaged: func(error) error { return nil },
			}}
			require.NoError(t, r.read())
			require.Positive(t, r.counts.Damaged)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
		})
	}
}

func TestRead_CountsDamageWithoutKeepingIt(t *testing.T) {
	counts, err := Read(context.Background(), openfile.New(context.Background(), "file", io.MultiReader(
		strings.NewReader("{}\n"), repeated("x\n", 200_000)), nil), Sink{
		Traces: func(ptrace.Traces) error { return nil }, Damaged: func(error) error { return nil },
	})
	require.NoError(t, err)
	require.Equal(t, Counts{Traces: 1, Damaged: 100_000}, counts)
}
