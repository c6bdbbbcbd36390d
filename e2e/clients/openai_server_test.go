// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// modelServer answers as an OpenAI-compatible model server, on a fixed schedule, and
// records when it sent each frame. The spans of client libraries are compared with
// these times.
type modelServer struct {
	url  string
	http *httptest.Server

	// mu guards everything declared below.
	mu     sync.Mutex
	served []served
}

// served is one request at the server.
type served struct {
	model    string
	api      apiName
	streamed bool
	received time.Time
	headers  time.Time // when the answer's headers were sent
	sent     []sentFrame
}

// sentFrame is one frame of a stream and the time when it was written.
type sentFrame struct {
	kind frameKind
	at   time.Time
}

// times returns when the frames of a kind were written.
func (s served) times(kind frameKind) []time.Time {
	var times []time.Time
	for _, frame := range s.sent {
		if frame.kind == kind {
			times = append(times, frame.at)
		}
	}
	return times
}

// reportedUsage reports whether the answer included token counts.
func (s served) reportedUsage() bool {
	return !s.streamed || len(s.times(usageFrame)) > 0
}

func startModelServer(t *testing.T) *modelServer {
	t.Helper()
	s := &modelServer{}
	mux := http.NewServeMux()
	for _, api := range apis {
		mux.HandleFunc("POST /v1/"+string(api.name), s.answer(api))
	}
	s.http = httptest.NewServer(mux)
	t.Cleanup(s.http.Close)
	s.url = s.http.URL + "/v1"
	return s
}

// stop ends the server after its last request, and returns the requests by model. The
// clients use a different model name in each call, which identifies the call.
func (s *modelServer) stop(t *testing.T) map[string]served {
	t.Helper()
	s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	byModel := map[string]served{}
	for _, request := range s.served {
		require.NotContains(t, byModel, request.model, "the client requested a model twice")
		byModel[request.model] = request
	}
	return byModel
}

func (s *modelServer) answer(api api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request := served{received: time.Now(), api: api.name}
		var body struct {
			Model         string
			Stream        bool
			StreamOptions struct {
				IncludeUsage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request.model, request.streamed = body.Model, body.Stream
		if body.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			request.stream(w, r, api.frames(body.Model, body.StreamOptions.IncludeUsage))
		} else {
			time.Sleep(time.Until(request.received.Add(wholeAnswerAfter)))
			w.Header().Set("Content-Type", "application/json")
			request.sent = []sentFrame{{kind: wholeFrame, at: time.Now()}}
			_, _ = w.Write(api.whole(body.Model))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.served = append(s.served, request)
	}
}

// abortedAfter is how many tokens the client of an aborted stream gets, see clients/calls.mjs.
const abortedAfter = 6

// stream sends each frame at its time, until the client goes away. The headers are sent
// at once, or with the first frame if the model's name ends in -held. If it ends in
// -aborted, the client goes away after some tokens, and the server waits for that.
func (s *served) stream(w http.ResponseWriter, r *http.Request, frames []frame) {
	flusher := http.NewResponseController(w)
	if !strings.HasSuffix(s.model, "-held") {
		s.headers = time.Now()
		_ = flusher.Flush()
	}
	for _, frame := range frames {
		if strings.HasSuffix(s.model, "-aborted") && len(s.times(contentFrame)) == abortedAfter {
			<-r.Context().Done()
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Until(s.received.Add(frame.after))):
		}
		at := time.Now()
		if s.headers.IsZero() {
			s.headers = at
		}
		if _, err := w.Write(frame.body); err != nil {
			return
		}
		if err := flusher.Flush(); err != nil {
			return
		}
		s.sent = append(s.sent, sentFrame{kind: frame.kind, at: at})
	}
}
