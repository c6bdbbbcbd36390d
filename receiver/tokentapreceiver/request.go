// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"net/http"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// What is a request, as docs/definitions.md has it: each generation that was asked for counts once.

// maxStored is the number of stored responses that are remembered, so that reading one again counts nothing.
const maxStored = 1 << 17

func newStored(now time.Time) *dedup.Set {
	return dedup.NewSet(dedup.Config{Horizon: 24 * time.Hour, MaxSpans: maxStored}, now)
}

// isRequest reports whether the exchange is a request to a model: it becomes a span, and counts.
func (d *decoding) isRequest(o *llmstream.Observation) bool {
	recognised := o.Format != "" && !o.Guessed
	if recognised && d.asked.facts.SharedPath != "" {
		d.route.answered.Store(d.asked.facts.SharedPath, o.Format)
	}
	switch {
	case !d.asked.asks():
		return false
	case d.asked.facts.Replayed:
		return recognised && o.Ended && !o.Pending && d.answered.status < http.StatusBadRequest && d.firstShown(o)
	case recognised:
		goesOn := o.Pending || d.asked.facts.Background && !o.Ended && o.Error == ""
		if goesOn && d.answered.status < http.StatusBadRequest {
			return false // until a read shows how it ended
		}
		d.firstShown(o)
		return true
	case d.asked.facts.Format != "":
		return true
	default:
		return d.asked.facts.SharedPath != "" && d.failed(o) && d.meant()
	}
}

// isLikely reports whether an exchange that is under way is a request to a model, as far as it is known.
func (d *decoding) isLikely(o *llmstream.Observation) bool {
	if !d.asked.asks() {
		return false
	}
	return o.Format != "" && !o.Guessed || d.asked.facts.Format != "" || d.asked.facts.SharedPath != "" && d.meant()
}

// failed reports whether the exchange ended without an answer that could show its format.
func (d *decoding) failed(o *llmstream.Observation) bool {
	return d.answered.status == 0 || d.answered.status >= http.StatusBadRequest || o.Error != "" || !d.answered.complete
}

// meant reports whether a failed request on a path that other services have, too, was meant for a model: an outage must
// not vanish. A body that was cut does not count against it.
func (d *decoding) meant() bool {
	_, answered := d.route.answered.Load(d.asked.facts.SharedPath)
	return answered || d.asked.facts.Fits || d.asked.truncated
}

// firstShown reports whether a response that can be read again ends for the first time.
func (d *decoding) firstShown(o *llmstream.Observation) bool {
	if o.ResponseID == "" || !o.Format.IsStored() {
		return true
	}
	stored := d.receiver.stored
	key := stored.KeyOfSeed([]byte(d.route.endpoint.Host + "\x00" + o.ResponseID))
	before := stored.Evicted()
	first := stored.AddAll([]dedup.Key{key}, time.Now(), nil)[0]
	if forgotten := stored.Evicted() - before; forgotten > 0 {
		d.receiver.telemetry.ReceiverTokenTapResponsesForgotten.Add(context.Background(), forgotten)
	}
	return first
}
