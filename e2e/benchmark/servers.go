// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"
)

// serveFloor answers HTTP requests after reading their bodies: the least that a server in
// Go does for the bytes of a request.
func serveFloor(address string) error {
	server := http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	return server.ListenAndServe()
}

// streamPath is answered with a stream of chunks, in the format of OpenAI.
const streamPath = "/v1/chat/completions"

// A chunk carries when it was sent as its text, and when its request arrived as its
// creation time. Both are Unix nanoseconds of this machine.
const (
	receivedKey = `"created":`
	sentKey     = `"content":"`
	chunkFormat = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk",` + receivedKey + `%d,"model":"bench",` +
		`"choices":[{"index":0,"delta":{` + sentKey + `%d"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	lastFormat = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk",` + receivedKey + `%d,"model":"bench",` +
		`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

func serveStreams(address string) error {
	return serve(address, http.HandlerFunc(answerWithStream))
}

// serve answers HTTP/1.1 and HTTP/2, both without TLS, as the tap does.
func serve(address string, handler http.Handler) error {
	server := http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: handler, Protocols: &http.Protocols{}}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server.ListenAndServe()
}

// answerWithStream answers with the number of chunks that the request asks for, and the time between
// them.
func answerWithStream(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	chunks, _ := strconv.Atoi(r.FormValue("chunks"))
	every, _ := time.ParseDuration(r.FormValue("every"))
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	for i := range chunks {
		time.Sleep(time.Until(received.Add(time.Duration(i+1) * every)))
		_, _ = fmt.Fprintf(w, chunkFormat, received.UnixNano(), time.Now().UnixNano())
		if flusher.Flush() != nil {
			return
		}
	}
	_, _ = fmt.Fprintf(w, lastFormat, received.UnixNano())
}

// stampAfter returns the Unix nanoseconds behind a key.
func stampAfter(event []byte, key string) (nanos int64, ok bool) {
	_, rest, ok := bytes.Cut(event, []byte(key))
	for ok && len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
		nanos, rest = 10*nanos+int64(rest[0]-'0'), rest[1:]
	}
	return nanos, ok && nanos > 0
}

// serveReverseProxy is Go's reverse proxy and nothing else.
func serveReverseProxy(address, upstream string) error {
	target, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: maxStreams, DisableCompression: true}
	return serve(address, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
	})
}
