// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import "bytes"

// readError records the error that an event carries in one of the shapes that services
// use. It may stand beside tokens, or be all that a document with an error status holds.
func readError(e event, v value, status int, r *record) {
	// Most events say nothing of errors, and are searched faster than read.
	if status < 400 && string(e.name) != "error" && !bytes.Contains(v, []byte("error")) {
		return
	}
	var detail, flat, failed bool
	var kind value
	for name, m := range v.members {
		switch string(name) {
		case "error":
			if !m.isNull() && !m.isFalse() && !m.is("") {
				failed = true
				if m.isObject() {
					kind = errorType(m)
				}
			}
		case "error_type":
			flat, kind = true, m
		case "object", "type":
			flat = flat || m.is("error")
		case "detail", "message", "errors":
			detail = detail || !m.isNull()
		}
	}
	switch {
	case failed:
		if kind.isNull() {
			kind = v.get("error_type")
		}
	case flat || detail && status >= 400 || string(e.name) == "error":
		if kind.isNull() {
			kind = errorType(v)
		}
	default:
		return
	}
	r.fail(kind.name())
}

// saysError reports whether data that is no JSON is an error in words, such as "error: the engine died".
func saysError(data []byte) bool {
	data = bytes.TrimLeft(data, " [")
	const word = "error"
	if len(data) < len(word) || !bytes.EqualFold(data[:len(word)], []byte(word)) {
		return false
	}
	return len(data) == len(word) || data[len(word)] == ':' || data[len(word)] == ']'
}

// errorType returns the type, else the code, else the status of an error.
func errorType(v value) value {
	for _, name := range [...]string{"type", "code", "status"} {
		if m := v.get(name); m.name() != "" && !m.is("error") {
			return m
		}
	}
	return nil
}

// cut returns at most maxName bytes as a string.
func cut(text []byte) string { return string(text[:min(len(text), maxName)]) }
