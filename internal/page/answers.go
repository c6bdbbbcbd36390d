// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// number is a number that may be missing: NaN is null in JSON.
type number float64

var missing = number(math.NaN())

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// failure is an error that the API reports, with the remedy.
type failure struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	// Reason is that of a missing limit.
	Reason string `json:"reason,omitempty"`
}

func (f *failure) Error() string { return f.Message + ": " + f.Remedy }

func invalid(remedy, format string, args ...any) error {
	return &failure{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// Limits of the answers that are computed at a time. One that reads a day of 200 series
// takes a few hundred milliseconds of CPU.
const (
	maxComputing = 2
	// MaxWaiting limits the requests that wait for an answer.
	MaxWaiting = 128
	// maxAge is the time for which equal requests get one answer.
	maxAge = 500 * time.Millisecond
	// maxCached limits the answers that are kept for this.
	maxCached = 64
)

// answers is the state of the answers that are computed: few at a time, and those to equal requests once.
type answers struct {
	flights   *singleflight.Group
	computing chan struct{}
	refused   [limits]atomic.Int64

	mu     sync.Mutex
	recent map[string]answer
}

type answer struct {
	body []byte
	at   time.Time
}

func newAnswers() *answers {
	return &answers{
		flights:   new(singleflight.Group),
		computing: make(chan struct{}, maxComputing),
		recent:    map[string]answer{},
	}
}

// limit is a limit that refuses requests.
type limit int

const (
	limitEventStreams limit = iota
	limitRequests
	limitShare
	limitPairs
	limits // their number
)

var limitNames = [limits]string{"event_streams", "requests", "max_share_per_client", "pairs"}

// refuse returns the error of a request over a limit.
func (p *Page) refuse(over limit, remedy, format string, args ...any) error {
	p.answers.refused[over].Add(1)
	return &failure{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// Refused calls observe with the number of requests over each limit.
func (p *Page) Refused(observe func(limit string, requests int64)) {
	for i, name := range limitNames {
		observe(name, p.answers.refused[i].Load())
	}
}

// admit takes a place for a request, which the caller has to release.
func (p *Page) admit(r *http.Request) (release func(), err error) {
	client := httpguard.ClientOf(r.Context())
	switch p.Requests.Take(client) {
	case httpguard.Full:
		return nil, p.refuse(limitRequests, "ask again in a few seconds, or less often", "%d requests wait for an answer already", p.Requests.Limit())
	case httpguard.ShareFull:
		return nil, p.refuse(limitShare, "ask again in a few seconds, or less often, or raise max_share_per_client", "this client has its share of requests that wait for an answer already")
	}
	return func() { p.Requests.Give(client) }, nil
}

// get returns the answer to a request.
func (p *Page) get(request string, compute func() (any, error)) ([]byte, error) {
	a := p.answers
	body, err, _ := a.flights.Do(request, func() (any, error) {
		if body, ok := a.cached(request); ok {
			return body, nil
		}
		defer a.compute()()
		content, err := compute()
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(content)
		if err == nil {
			a.keep(request, body)
		}
		return body, err
	})
	if err != nil {
		return nil, err
	}
	return body.([]byte), nil
}

// compute waits until an answer may be computed, and returns what to call when it is.
func (a *answers) compute() (done func()) {
	a.computing <- struct{}{}
	return func() { <-a.computing }
}

func (a *answers) cached(request string) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.recent[request]
	return c.body, ok && time.Since(c.at) < maxAge
}

func (a *answers) keep(request string, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for old, c := range a.recent {
		if time.Since(c.at) >= maxAge {
			delete(a.recent, old)
		}
	}
	if len(a.recent) < maxCached {
		a.recent[request] = answer{body, time.Now()}
	}
}

// answer returns what an endpoint at a path answers to a request.
func (p *Page) answer(name, path string, r *http.Request, compute func(*query) (any, error)) ([]byte, error) {
	release, err := p.admit(r)
	if err != nil {
		return nil, err
	}
	defer release()
	return p.get(path+"?"+r.URL.RawQuery, func() (any, error) {
		q, err := p.parse(name, r)
		if err != nil {
			return nil, err
		}
		p.fold()
		if hasFilters(name) {
			q.view = p.viewFrom(q, q.since())
			p.chooseVantage(q)
		}
		return compute(q)
	})
}

// serve returns the handler of an endpoint.
func (p *Page) serve(name string, compute func(*query) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := p.answer(name, r.URL.Path, r, compute)
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) //nolint:gosec // JSON is no HTML, and the browser must not guess; an error means that the client went away
	}
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	f := &failure{Status: http.StatusInternalServerError, Message: err.Error(), Remedy: "report this as a bug"}
	errors.As(err, &f)
	if f.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(map[string]*failure{"error": f})
}

func unknownPath(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		fail(w, &failure{Status: http.StatusMethodNotAllowed, Message: "only " + root + "compare takes other methods, POST and DELETE", Remedy: "use GET"})
		return
	}
	fail(w, &failure{Status: http.StatusNotFound, Message: "unknown path", Remedy: "see " + root + "openapi.yaml for the endpoints"})
}
