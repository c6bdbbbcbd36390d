// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
)

// serve runs a server of -serve. It answers HTTP/1.1 and HTTP/2, both without TLS, as the tap does.
func serve(kind, address, upstream string) error {
	target := must(url.Parse(upstream))
	server := &http.Server{ReadHeaderTimeout: time.Minute}
	switch kind {
	case "floor":
		server.Handler = &tallies{byModel: map[string]*tally{}}
	case "streams":
		server.Handler = http.HandlerFunc(answerWithStream)
	case "proxy":
		server.Handler = plainReverseProxy(target)
	case "collector-proxy":
		server = collectorReverseProxy(target)
	}
	server.Addr, server.Protocols = address, &http.Protocols{}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	return server.ListenAndServe()
}

// reverseProxy is Go's reverse proxy and nothing else.
func reverseProxy(upstream *url.URL, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }, Transport: transport, FlushInterval: -1}
}

func plainReverseProxy(upstream *url.URL) http.Handler {
	return reverseProxy(upstream, &http.Transport{MaxIdleConnsPerHost: maxStreams, DisableCompression: true})
}

// collectorReverseProxy has the HTTP server and client of a Collector.
func collectorReverseProxy(upstream *url.URL) *http.Server {
	client, server := confighttp.NewDefaultClientConfig(), confighttp.NewDefaultServerConfig()
	client.MaxIdleConnsPerHost = maxStreams
	transport := must(client.ToClient(context.Background(), nil, component.TelemetrySettings{})).Transport
	return must(server.ToServer(context.Background(), nil, componenttest.NewNopTelemetrySettings(), reverseProxy(upstream, transport)))
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

// answerWithStream answers with the number of chunks that the request asks for, and the mean time between
// them. At fixed times, the same chunks of all streams would coincide during a whole turn, and a proxy that wakes
// up for several chunks needs less CPU time for each.
func answerWithStream(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	chunks, _ := strconv.Atoi(r.FormValue("chunks"))
	every, _ := time.ParseDuration(r.FormValue("every"))
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	for i := range chunks {
		due := (float64(i) + 0.5 + rand.Float64()) * float64(every) //nolint:gosec // no secret
		time.Sleep(time.Until(received.Add(time.Duration(due))))
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
