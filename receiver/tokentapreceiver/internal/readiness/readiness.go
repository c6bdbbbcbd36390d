// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package readiness answers load balancers that ask whether an engine may get requests. It fails open: only an
// engine that is known to fail gets 503.
package readiness

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Paths of the answers.
const (
	enginesPath = "/engines"
	readyPath   = "/engines/{name}/ready"
)

// readiness answers for the engines of a receiver.
type readiness struct {
	watch  *engines.Watch
	now    func() time.Duration
	logger *zap.Logger // once a minute per message
}

// newHandler returns the handler for the engines of a receiver.
func newHandler(watch *engines.Watch, logger *zap.Logger) http.Handler {
	return (&readiness{watch, engines.Now, diagnostics.OnceAMinute(logger)}).handler()
}

func (r *readiness) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+enginesPath, r.all)
	mux.HandleFunc("GET "+readyPath, r.ready) // and HEAD
	mux.HandleFunc("OPTIONS "+readyPath, r.ready)
	return mux
}

// engineOf returns the name of the engine in a path, whose colons may be written as underscores. A host name may
// have underscores, too, so only the last one is a colon; an IPv6 address has none.
func engineOf(path string) string {
	if strings.HasPrefix(path, "[") {
		return strings.ReplaceAll(path, "_", ":")
	}
	if i := strings.LastIndexByte(path, '_'); i >= 0 && !strings.Contains(path, ":") {
		return path[:i] + ":" + path[i+1:]
	}
	return path
}

func (r *readiness) ready(w http.ResponseWriter, req *http.Request) {
	name, now := engineOf(req.PathValue("name")), r.now()
	s, known, ready := r.watch.Ready(now, name)
	if !known {
		r.warn(name)
		s.Engine = names.CleanLabel(name)
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	write(w, status, verdictOf(now, &s, known))
}

func (r *readiness) all(w http.ResponseWriter, _ *http.Request) {
	now, all := r.now(), []engine{} // not null
	for _, s := range r.watch.Statuses() {
		all = append(all, engineWith(now, &s))
	}
	write(w, http.StatusOK, map[string][]engine{"engines": all})
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error is the client's
}

// maxNamed limits the names in a message.
const maxNamed = 20

// warn logs that a machine asks for an engine that is not in the table: the path of its check may be misspelt.
func (r *readiness) warn(name string) {
	var known []string
	for _, s := range r.watch.Statuses() {
		if len(known) == maxNamed {
			known = append(known, "...")
			break
		}
		known = append(known, s.Engine)
	}
	r.logger.Warn("a readiness check asks for an engine that is not known, and gets 200; if it should be one of these, correct the path of the check",
		zap.String("engine", names.CleanLabel(name)), zap.Strings("engines", known))
}
