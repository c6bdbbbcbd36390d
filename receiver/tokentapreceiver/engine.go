// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

const limitEngines = "max_engines"

// watchEngines begins to judge the upstreams, if liveness is configured. All of them are listed before their first request.
func (r *tokenTapReceiver) watchEngines(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Liveness.Get()
	if cfg == nil {
		return nil
	}
	r.engines = engines.New(&cfg.Engines, liveness.Limits{Ejected: cfg.MaxEjected}, r.testify, r.settings.Logger)
	unjudged := map[string]bool{}
	for _, route := range r.routes {
		name := engineName(route.endpoint)
		if route.engine = r.engines.Find(name); route.engine == nil {
			unjudged[name] = true
		}
	}
	if len(unjudged) > 0 {
		r.telemetry.ReceiverTokenTapEnginesUnjudged.Add(ctx, int64(len(unjudged)), diagnostics.Label("limit", limitEngines))
	}
	return r.engines.Start(ctx, host, r.cfg.StorageID, r.settings.ID)
}

// engineName is the name of an upstream in verdicts: the server.address and server.port of its spans.
func engineName(endpoint *url.URL) string {
	return engines.Name(endpoint.Hostname(), strconv.FormatInt(portOf(endpoint), 10))
}

// engineRequest is the request of an exchange in the eyes of its engine. It is empty if the engine is not judged. The
// mutex of the decoding guards it.
type engineRequest struct {
	open    *liveness.Request // nil before the engine has the request
	witness bool
	offset  int64 // of the engine's clock from the Unix times of the decoding, in nanoseconds
}

// beginRequest notes that the engine has the whole request, or that it answers. A client that uploads slowly does not blame it.
func (d *decoding) beginRequest() {
	if d.route.engine == nil || d.request.open != nil {
		return
	}
	if whole, _ := d.asked.copied.state(); whole {
		d.readRequest()
	}
	var nothing llmstream.Observation
	if !d.generates(&nothing) {
		return
	}
	d.openRequest(d.isWitness(&nothing))
}

func (d *decoding) openRequest(witness bool) {
	d.request = engineRequest{
		open:    d.route.engine.Begin(engines.Now(), d.asked.copied.size(), witness),
		witness: witness,
		offset:  int64(engines.At(d.start)) - d.start.UnixNano(),
	}
}

// beginUnseen begins the request of an exchange that is only forwarded. While it is open, the engine is never stuck.
func (x *exchange) beginUnseen() {
	if x.route.engine == nil {
		return
	}
	asked := asked{request: x.request, path: sentPath(x.request.URL)}
	asked.readHead()
	if asked.asks() && !asked.facts.Replayed {
		x.unseen.open = x.route.engine.Begin(engines.Now(), 0, false)
		x.unseen.open.Unseen(engines.Now())
	}
}

// generates reports whether the engine generates tokens for the exchange, as far as it is known.
func (d *decoding) generates(o *llmstream.Observation) bool {
	return d.isLikely(o) && !d.asked.facts.Replayed
}

// token notes a token that arrived at the Unix time in nanoseconds.
func (r *engineRequest) token(at int64) {
	if r.open != nil {
		r.open.Token(time.Duration(at + r.offset))
	}
}

// endRequest says how the request ended. d.answered says how the exchange did.
func (d *decoding) endRequest(o *llmstream.Observation) {
	engine, r := d.route.engine, &d.request
	switch {
	case engine == nil || !d.generates(o):
	case r.open != nil:
		d.route.habits.learn(&d.asked.facts, o)
		r.end(d.requestOutcome(o), usageOf(o))
	case d.call.lastToken != 0: // only the answer showed that it was a request to a model
		engine.Produced(engines.Now())
	}
	if engine != nil && d.asked.asks() {
		d.judgeAnswer(engine)
	}
	r.end(liveness.Abandoned, liveness.Usage{})
}

func (d *decoding) requestOutcome(o *llmstream.Observation) liveness.Outcome {
	switch {
	case o.Ended && o.Error == "" && !d.failed(o):
		return liveness.Completed
	case d.clientGone(), d.receiver.closing.Load(), d.answered.status >= 400 && d.answered.status < 500:
		return liveness.Abandoned
	default:
		return liveness.Broken
	}
}

func usageOf(o *llmstream.Observation) liveness.Usage {
	u := o.Usage()
	return liveness.Usage{Input: u.Input.Value, Cached: u.CacheRead.Value}
}

// end ends the request, unless it has ended.
func (r *engineRequest) end(outcome liveness.Outcome, usage liveness.Usage) {
	if r.open != nil {
		r.open.End(engines.Now(), outcome, usage)
		r.open = nil
	}
}
