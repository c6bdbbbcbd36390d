// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"cmp"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

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
	if r.open == nil && d.call.lastToken == 0 {
		return
	}
	o := d.reader.observation()
	switch {
	case r.open == nil:
		if d.generates(&o) { // as only the answer shows
			d.openRequest(false)
			r.token(d.call.lastToken)
		}
	case d.stopped, d.call.refused(), o.Unparsed.Corrupt > 0:
		r.open.Unseen(engines.Now())
	default:
		if witness := d.isWitness(&o) && !d.isBlocked(); witness != r.witness {
			r.witness = witness
			r.open.SetWitness(engines.Now(), witness)
		}
	}
}

// isWitness reports whether tokens of the exchange show at once, as far as is known of its request, and of its answer up to
// now. If in doubt, they do not: then its silence does not count.
func (d *decoding) isWitness(o *llmstream.Observation) bool {
	facts, habits := &d.asked.facts, &d.route.habits
	switch {
	case d.upgraded != nil, d.asked.truncated, !facts.Stream && !o.Streamed:
		return false
	case d.answered.status >= http.StatusBadRequest, o.Ended, o.Error != "", len(o.FinishReasons) > 0:
		return false // no more tokens come
	case facts.NoTokens, facts.Background, facts.Pauses.Long, habits.holdsAnswers.Load():
		return false
	case formatOf(facts, o).IsStored(): // tools and reasoning of such responses may be set elsewhere
		return false
	case facts.Pauses.MayCall() && (o.Events > 0 || habits.holdsCalls.Load()):
		return false // the silence may be that of a call which is held until it is whole
	}
	return !d.mayReason(o)
}

// mayReason reports whether the model may reason now without showing it: until the answer proper begins.
func (d *decoding) mayReason(o *llmstream.Observation) bool {
	if o.TokenChunks > o.ChunksOf(llmstream.Reasoning) {
		return false
	}
	facts := &d.asked.facts
	if facts.Pauses.Reasoning && o.TokenChunks == 0 {
		return true
	}
	hosted := providerOf(d.route.endpoint.Hostname(), "") != ""
	return hosted || formatOf(facts, o) == llmstream.Gemini || hidesReasoning(cmp.Or(facts.Model, o.Model))
}

// silentModels begin the names of hosted models that reason unasked, and show a summary or nothing. A gateway may have them.
var silentModels = [...]string{"o1", "o3", "o4", "gpt-5", "gemini", "grok", "claude"}

func hidesReasoning(model string) bool {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, name := range silentModels {
		if strings.HasPrefix(model, name) {
			return true
		}
	}
	return false
}

func formatOf(facts *llmstream.RequestFacts, o *llmstream.Observation) llmstream.Format {
	return cmp.Or(o.Format, facts.Format)
}

// habits are what answers of an upstream showed of when it sends tokens.
type habits struct {
	holdsAnswers atomic.Bool // the last answer that should be a stream came whole
	holdsCalls   atomic.Bool // a tool call came whole
}

// learn learns from an answer that has ended.
func (h *habits) learn(facts *llmstream.RequestFacts, o *llmstream.Observation) {
	if o.TokenChunks == 0 {
		return
	}
	if facts.Stream {
		h.holdsAnswers.Store(!o.Streamed)
	}
	if o.Streamed && o.ChunksOf(llmstream.ToolCall) == 1 {
		h.holdsCalls.Store(true)
	}
}

// patience is how long a client may take for a part of the answer until the silence is its own: the tap reads no further
// meanwhile.
const patience = 500 * time.Millisecond

// isBlocked reports whether the client does not take what was read.
func (d *decoding) isBlocked() bool {
	read := d.forwards.Load()
	return read != 0 && d.now()-read > int64(patience)
}
