// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// Capture is what a client library posted while it read streamed answers, and what
// the server did meanwhile. Both ran on one machine, with one clock.
type Capture struct {
	// Posts are the requests with spans that the library made, in their order.
	Posts []CapturedPost
	// Served are the answers that the server streamed, in their order.
	Served []CapturedAnswer
}

// CapturedPost is one OTLP request in JSON.
type CapturedPost struct {
	Path        string
	ContentType string `json:"content_type"`
	Body        json.RawMessage
}

// CapturedAnswer says when the server sent each part of an answer, in Unix
// nanoseconds. HeadersSent is zero where it was not recorded.
type CapturedAnswer struct {
	HeadersSent int64 `json:"headers_sent_unix_nano,string"`
	Frames      []struct {
		Kind string
		Sent int64 `json:"sent_unix_nano,string"`
	}
}

// ReadCapture returns the capture of a library.
func ReadCapture(tb testing.TB, name string) Capture {
	tb.Helper()
	var capture Capture
	ReadJSON(tb, "captures/"+name+".json", &capture)
	if len(capture.Posts) == 0 {
		tb.Fatalf("the capture of %s has no spans", name)
	}
	return capture
}

// CaptureNames returns the names of all captures, sorted.
func CaptureNames(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(Data(tb, "captures/*.json"))
	if err != nil {
		tb.Fatal(err)
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return names
}
