// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	// kept are the names whose values stay if they are identifiers.
	kept = names(`type object role finish_reason stop_reason finishReason stopReason status model modelVersion model_name model_id
		event_type modality done_reason completionReason native_finish_reason stop_type reason error_type created_at mimeType`)
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

var identifier = regexp.MustCompile(`^[A-Za-z0-9_.:/@+;=-]{0,80}$`)

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
