// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// openStreams shows the open streams to exporters of the same Collector.
type openStreams struct {
	store    *assembly.Store
	service  string // of streams whose resource has none
	timeouts assembly.Timeouts
	closing  context.Context
}

// visit is an inprocess.VisitOpenStreams. During a shutdown it visits no stream: all of them end, or stay in
// the storage.
func (o *openStreams) visit(labels inprocess.Labels, visit func(*inprocess.OpenStream)) {
	if o.closing.Err() != nil {
		return
	}
	of := startValues{service: o.service, labels: labels, any: len(labels.Values()) > 0, known: map[string][]string{}}
	now := time.Now()
	o.store.Visit(o.timeouts, func(v *assembly.Visited) {
		visit(&inprocess.OpenStream{
			Dimensions: of.read(v), Vantage: v.Vantage.String(), Decoding: v.Decoding, Silent: v.Silent,
			Age: max(0, now.Sub(time.Unix(0, v.Start))), Tokens: v.Tokens,
		})
	})
}

// startValues reads the values of labels. Streams with the same bytes have the same values.
type startValues struct {
	service string
	labels  inprocess.Labels
	any     bool                // whether there is a label
	known   map[string][]string // by the bytes of attributes and resource
	key     []byte
}

// maxKnown limits the values that are known during a visit.
const maxKnown = 1 << 10

func (s *startValues) read(v *assembly.Visited) []string {
	if !s.any {
		return nil
	}
	s.key = append(protowire.AppendBytes(s.key[:0], v.Attributes), v.Resource...)
	values, ok := s.known[string(s.key)]
	if ok {
		return values
	}
	values = s.labels.Values()
	resource, own := pcommon.NewMap(), pcommon.NewMap()
	streamspan.PutResource(resource, v.Resource, s.service)
	senderattributes.Put(own, v.Attributes)
	for _, attributes := range [...]pcommon.Map{resource, own} { // of both, the stream's own value counts
		for name, value := range attributes.All() {
			s.labels.Read(values, name, value)
		}
	}
	if len(s.known) < maxKnown {
		s.known[string(s.key)] = values
	}
	return values
}
