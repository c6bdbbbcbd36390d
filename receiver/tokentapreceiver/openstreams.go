// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// visitOpen is an inprocess.VisitOpenStreams. Its streams are the calls that ask for a stream or get one, and
// those responses of connections that have begun.
func (r *tokenTapReceiver) visitOpen(labels inprocess.Labels, visit func(*inprocess.OpenStream)) {
	values := labels.Values()
	r.decodings.Range(func(key, _ any) bool {
		d := key.(*decoding)
		d.observe(func() {
			d.visitOpen(func(c *call, o *llmstream.Observation) {
				labels.Clear(values)
				if len(values) > 0 {
					attributes := d.startAttributes(o)
					attributes.PutStr(names.ServiceName, serviceOf(attributes, r.cfg.ServiceName))
					for name, v := range attributes.All() {
						labels.Read(values, name, v)
					}
				}
				visit(&inprocess.OpenStream{
					Dimensions: values, Vantage: timeline.VantageGateway.String(),
					Decoding: c.lastToken != 0, Silent: time.Duration(d.now() - max(c.start, c.lastToken)),
					Age: time.Duration(d.now() - c.start), Tokens: c.line.Tokens(),
				})
			})
		})
		return true
	})
}

// visitOpen calls visit with the open calls of an exchange, and what each reported so far. A call
// that is not read any more would seem silent, so it is left out. It is called with the mutex.
func (d *decoding) visitOpen(visit func(*call, *llmstream.Observation)) {
	d.decode()
	if d.stopped {
		return
	}
	each := func(c *call, o *llmstream.Observation) {
		if o.Unparsed.Corrupt == 0 && !c.refused() {
			visit(c, o)
		}
	}
	if d.upgraded != nil {
		d.upgraded.server.Open(func(r llmstream.Response, o *llmstream.Observation) { each(r.(*call), o) })
		return
	}
	if whole, _ := d.asked.copied.state(); whole {
		d.readRequest()
	}
	o := d.reader.observation()
	if d.isLikely(&o) && (d.asked.facts.Stream || o.Streamed) && !o.Ended {
		each(&d.call, &o)
	}
}

// startAttributes returns the attributes of a call's span that are known before its end.
func (d *decoding) startAttributes(o *llmstream.Observation) pcommon.Map {
	attributes := pcommon.NewMap()
	d.putHeaders(attributes)
	d.putHTTP(attributes, ending{})
	d.putModelCall(attributes, &llmstream.Observation{Format: o.Format, Model: o.Model, ResponseID: o.ResponseID, Streamed: o.Streamed})
	return attributes
}
