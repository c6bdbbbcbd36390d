// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"net/http"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// testify passes on what is known of open exchanges, before their engines are judged.
func (r *tokenTapReceiver) testify() {
	r.decodings.Range(func(key, _ any) bool {
		if d := key.(*decoding); d.route.engine != nil {
			d.observe(d.testify)
		}
		return true
	})
}

// testify says whether the silence of an exchange counts. It is called with the mutex.
func (d *decoding) testify() {
	d.decode()
	r := &d.request
	if r.open == nil {
		return
	}
	o := d.reader.observation()
	if d.stopped || d.call.refused() || o.Unparsed.Corrupt > 0 {
		r.open.Unseen(engines.Now())
		return
	}
	if witness := d.isWitness(&o); witness != r.witness {
		r.witness = witness
		r.open.SetWitness(engines.Now(), witness)
	}
}

// isWitness reports whether tokens of the exchange show at once, so that its silence is that of its engine.
func (d *decoding) isWitness(o *llmstream.Observation) bool {
	facts := &d.asked.facts
	switch {
	case d.upgraded != nil, d.answered.status >= http.StatusBadRequest:
		return false
	case o.Ended, o.Error != "", len(o.FinishReasons) > 0:
		return false
	default:
		return facts.Stream || o.Streamed
	}
}
