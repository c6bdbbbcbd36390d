// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// ServeHTTP implements POST /v1/tokens.
func (r *fakeReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/v1/tokens" || request.Method != http.MethodPost {
		http.NotFound(w, request)
		return
	}
	if refused, ok := r.begin(request.Header.Get("Authorization")); ok {
		if refused.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(refused.RetryAfter.Seconds())))
		}
		if refused.AfterLines > 0 {
			r.refuseAfterLines(w, request.Body, refused)
			return
		}
		http.Error(w, "not now", refused.Status)
		return
	}
	var err error
	switch contentType := request.Header.Get("Content-Type"); contentType {
	case "application/x-ndjson":
		err = r.acceptLines(request.Body)
	case "application/json":
		err = r.acceptMessage(request.Body, protojson.Unmarshal)
	case "application/x-protobuf":
		err = r.acceptMessage(request.Body, proto.Unmarshal)
	default:
		http.Error(w, contentType, http.StatusUnsupportedMediaType)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.rejects > 0 {
		fmt.Fprintf(w, `{"accepted":0,"rejected":%d,"errors":[{"line":1,"message":"wrong"}]}`, r.rejects)
		return
	}
	_, _ = io.WriteString(w, `{"accepted":1,"rejected":0,"errors":[]}`)
}

func (r *fakeReceiver) refuseAfterLines(w http.ResponseWriter, body io.Reader, refused refusal) {
	lines := bufio.NewScanner(body)
	for range refused.AfterLines {
		lines.Scan()
		r.mu.Lock()
		r.lines.WriteString(lines.Text() + "\n")
		r.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(refused.Status)
	fmt.Fprintf(w, `{"accepted":%d,"rejected":1,"errors":[{"message":"full"}]}`, refused.AfterLines-1)
}

func (r *fakeReceiver) acceptLines(body io.Reader) error {
	lines := bufio.NewScanner(body)
	var all []string
	for lines.Scan() {
		all = append(all, lines.Text())
		r.countReceived()
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines.WriteString(strings.Join(all, "\n") + "\n")
	return nil
}

func (r *fakeReceiver) acceptMessage(body io.Reader, decode func([]byte, proto.Message) error) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	r.countReceived()
	var message tokenpulsev1.ExportTokenStreamsRequest
	if err := decode(b, &message); err != nil {
		return err
	}
	return r.accept(&message)
}
