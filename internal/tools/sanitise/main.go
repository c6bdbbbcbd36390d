// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command sanitise makes the test data of receiver/tokentapreceiver/internal/llmstream from recorded answers of
// LLM services. It reads format/name.ext and format/name.expected.json of a directory,
// and writes sanitised copies and one INDEX.json. Recordings without a clear licence are
// left out.
//
// Every byte of structure stays. In JSON strings, except short identifiers under the
// names in kept, letters become x, digits 0, and other characters one of the same size
// in UTF-8, so that sizes and splits stay. So do the names in objects that the user
// defines, such as arguments. Numbers that encode text (token IDs, bytes) become ones.
// Base64 of event streams is sanitised inside, and their checksums are computed anew: a
// wrong one stays wrong. HTTP framing and the messages that a client sent are removed.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: sanitise <directory with recordings> <directory to write>")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// indexed are the members of an expected result that the index takes over as they are.
var indexed = []string{
	"license", "commit", "content_type", "content_encoding", "status", "request_model", "chunk_unit", "total_chunks", "model",
	"token_chunks", "channels", "first_token_chunk_index", "first_output_chunk_index", "last_token_chunk_index", "usage",
	"usage_is_final", "finish_reason", "error", "server_timings", "synthetic", "truncated", "source",
	"first_token_chunk_span", "last_token_chunk_span",
}

func run(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*", "*.expected.json"))
	if err != nil {
		return err
	}
	var index []map[string]any
	for _, file := range files {
		entry, err := recording(from, to, strings.TrimSuffix(file, ".expected.json"))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if entry != nil {
			index = append(index, entry)
		}
	}
	text, err := json.MarshalIndent(index, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "INDEX.json"), append(text, '\n'), 0o600)
}

func recording(from, to, base string) (map[string]any, error) {
	text, err := os.ReadFile(base + ".expected.json")
	if err != nil {
		return nil, err
	}
	var expected map[string]any
	if err := json.Unmarshal(text, &expected); err != nil {
		return nil, err
	}
	if expected["license_clear"] != true {
		return nil, nil
	}
	bodies, err := filepath.Glob(base + ".*")
	if err != nil {
		return nil, err
	}
	var file string
	for _, body := range bodies {
		if !strings.HasSuffix(body, ".expected.json") {
			file = body
		}
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if body, err = sanitiseBody(body, expected); err != nil {
		return nil, err
	}
	name, err := filepath.Rel(from, file)
	if err != nil {
		return nil, err
	}
	name = filepath.ToSlash(name)
	entry := map[string]any{"file": name, "request_path": path(expected["request_path"].(string)), "request": request(expected["request_body"])}
	for _, member := range indexed {
		if v := expected[member]; v != nil {
			entry[member] = v
		}
	}
	if usage := expected["usage_raw"]; usage != nil {
		text, err := json.Marshal(usage)
		if err != nil {
			return nil, err
		}
		sanitiseJSON(text)
		entry["usage_raw"] = json.RawMessage(text)
	}
	if model, ok := entry["request_model"].(string); ok {
		entry["request_model"] = path(model)
	}
	var ids []string
	for _, id := range expected["ids"].([]any) {
		ids = append(ids, string(replace([]byte(id.(string)))))
	}
	entry["ids"] = ids
	if headers, ok := expected["response_headers"].(map[string]any); ok {
		kept := map[string]any{}
		for name, v := range headers {
			if measured.MatchString(name) {
				kept[name] = v
			}
		}
		entry["response_headers"] = kept
	}
	target := filepath.Join(to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return nil, err
	}
	return entry, os.WriteFile(target, body, 0o600)
}

// measured matches the headers that report counts, times or an error type.
var measured = regexp.MustCompile(`^x-(amzn-bedrock-.*(count|latency)|queue-time|total-time|inference-time|compute-time|generated-tokens|prompt-tokens|time-per-token|amzn-errortype)$`)

// private matches the parts of paths that users named.
var private = regexp.MustCompile(`openllmetry-testing|fantasy-playground-\d+|thread_\w+`)

func path(p string) string {
	return private.ReplaceAllStringFunc(p, func(s string) string { return string(replace([]byte(s))) })
}

// request keeps the members of a request that say how it is answered.
func request(body any) map[string]any {
	if text, ok := body.(string); ok {
		var parsed any
		if json.Unmarshal([]byte(text), &parsed) != nil {
			return nil
		}
		body = parsed
	}
	members, _ := body.(map[string]any)
	kept := map[string]any{}
	for _, name := range []string{"model", "model_id", "stream", "n", "stream_options"} {
		if v, ok := members[name]; ok {
			kept[name] = v
		}
	}
	if parameters, ok := members["parameters"].(map[string]any); ok && parameters["stream"] != nil {
		kept["parameters"] = map[string]any{"stream": parameters["stream"]}
	}
	if model, ok := kept["model"].(string); ok {
		kept["model"] = path(model)
	}
	return kept
}

func sanitiseBody(body []byte, expected map[string]any) ([]byte, error) {
	if expected["http_wrapped"] == true {
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(body)), nil)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if body, err = io.ReadAll(response.Body); err != nil {
			return nil, err
		}
	}
	if expected["content_encoding"] == "gzip" {
		plain, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(plain); err != nil {
			return nil, err
		}
		sanitiseJSON(body)
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		err = w.Close()
		return compressed.Bytes(), err
	}
	switch expected["chunk_unit"] {
	case "sse_event":
		sanitiseSSE(body)
	case "eventstream_frame":
		return body, sanitiseFrames(body)
	case "ws_message_received":
		return received(body)
	default:
		sanitiseJSON(body)
	}
	return body, nil
}

// received keeps the messages of the server, one a line.
func received(lines []byte) ([]byte, error) {
	var kept []byte
	for line := range bytes.Lines(lines) {
		var message struct {
			Direction string
			Data      json.RawMessage
		}
		if err := json.Unmarshal(line, &message); err != nil {
			return nil, err
		}
		if message.Direction == "received" {
			sanitiseJSON(message.Data)
			kept = append(append(kept, message.Data...), '\n')
		}
	}
	return kept, nil
}

func sanitiseSSE(body []byte) {
	for len(body) > 0 {
		end := bytes.IndexAny(body, "\r\n")
		if end < 0 {
			end = len(body)
		}
		line := bytes.TrimPrefix(body[:end], []byte("\ufeff"))
		field, rest, _ := bytes.Cut(line, []byte(":"))
		switch string(field) {
		case "data":
			if string(bytes.TrimSpace(rest)) != "[DONE]" {
				sanitiseJSON(rest)
			}
		case "id":
			copy(rest, replace(rest))
		}
		body = body[min(end+1, len(body)):]
	}
}

func sanitiseFrames(body []byte) error {
	for len(body) > 0 {
		if len(body) < 16 {
			return io.ErrUnexpectedEOF
		}
		total, headers := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
		if int(total) > len(body) {
			return io.ErrUnexpectedEOF
		}
		frame := body[:total]
		sum := frame[total-4:]
		wrong := binary.BigEndian.Uint32(sum) ^ crc32.ChecksumIEEE(frame[:total-4])
		sanitiseJSON(frame[12+headers : total-4])
		binary.BigEndian.PutUint32(sum, crc32.ChecksumIEEE(frame[:total-4])^wrong)
		body = body[total:]
	}
	return nil
}

var (
	// kept are the names whose values stay if they are identifiers.
	kept = names(`type object role finish_reason stop_reason finishReason stopReason status model modelVersion model_name model_id
		event_type done_reason completionReason native_finish_reason stop_type reason error_type created_at`)
	// users are the names of objects whose members the user defines.
	users = names(`args arguments input properties parameters inputAssessment outputAssessments`)
	// encoded are the names of numbers that encode text.
	encoded = names(`bytes context token_ids prompt_token_ids token_id tokens input_ids output_ids`)
)

func names(list string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(list) {
		set[name] = true
	}
	return set
}

var identifier = regexp.MustCompile(`^[A-Za-z0-9_.:/@+-]{0,80}$`)

// level is an object or array that is open.
type level struct {
	object, users, encoded bool
	atName                 bool
	name                   string
}

// sanitiseJSON replaces text in place. It reads any number of JSON texts, also cut ones.
func sanitiseJSON(b []byte) {
	levels := []level{{}}
	for i := 0; i < len(b); i++ {
		top := &levels[len(levels)-1]
		switch c := b[i]; {
		case c == '{' || c == '[':
			next := level{
				object: c == '{', atName: c == '{', users: top.users || users[top.name],
				encoded: c == '[' && (top.encoded || encoded[top.name]),
			}
			if c == '[' {
				next.name = top.name
			}
			levels = append(levels, next)
		case c == '}' || c == ']':
			if len(levels) > 1 {
				levels = levels[:len(levels)-1]
			}
		case c == ',':
			top.atName = top.object
		case c == ':':
			top.atName = false
		case c == '"':
			end := i + 1
			for end < len(b) && b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			text := b[i+1 : min(end, len(b))]
			parent := ""
			if len(levels) > 1 {
				parent = levels[len(levels)-2].name
			}
			replaceString(text, top, parent)
			i = end
		case '0' <= c && c <= '9' && (top.encoded || top.name == "token_id" || top.name == "id"):
			b[i] = '1'
		}
	}
}

func replaceString(text []byte, top *level, parent string) {
	switch {
	case top.object && top.atName:
		if top.name = string(text); top.users {
			copy(text, replace(text))
		}
	case top.users:
		copy(text, replace(text))
	case top.name == "bytes":
		inner, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			copy(text, replace(text))
			return
		}
		sanitiseJSON(inner)
		base64.StdEncoding.Encode(text, inner)
	case kept[top.name] && identifier.Match(text):
	case top.name == "code" && parent == "error" && identifier.Match(text):
	case strings.HasSuffix(top.name, "_ns"):
	default:
		copy(text, replace(text))
	}
}

// replace returns text with other letters and digits, of the same size. Escape
// sequences stay, except those of characters.
func replace(text []byte) []byte {
	replaced := bytes.Clone(text)
	for i := 0; i < len(replaced); {
		r, size := utf8.DecodeRune(replaced[i:])
		switch {
		case r == '\\' && i+5 < len(replaced) && replaced[i+1] == 'u':
			code := bytes.ToLower(replaced[i+2 : i+6])
			stand := "0078"
			switch {
			case code[0] == 'd' && code[1] >= '8' && code[1] < 'c':
				stand = "d83d"
			case code[0] == 'd' && code[1] >= 'c':
				stand = "de00"
			case code[0] == '0' && code[1] == '0' && code[2] < '2':
				stand = string(code)
			}
			copy(replaced[i+2:], stand)
			size = 6
		case r == '\\':
			size = 2
		case 'a' <= r && r <= 'z':
			replaced[i] = 'x'
		case 'A' <= r && r <= 'Z':
			replaced[i] = 'X'
		case '0' <= r && r <= '9':
			replaced[i] = '0'
		case r >= utf8.RuneSelf && size > 1:
			copy(replaced[i:], map[int]string{2: "é", 3: "あ", 4: "😀"}[size])
		}
		i += size
	}
	return replaced
}
