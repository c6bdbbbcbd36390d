// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/metricreader"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// gateway adds up what the connectors, or receivers, of all processes sent, one after the other. It outlives
// crashes and restarts.
type gateway struct {
	reader   *metricreader.Reader
	requests float64
	// before is what those of earlier processes sent.
	before float64
}

func newGateway() gateway {
	return gateway{reader: metricreader.New(metricreader.Options{MaxStreams: 100_000}, time.Now())}
}

// gathered compares the gateway with what the sinks noted, which only remember the last data
// points of this process.
func (w *world) gathered(metrics pmetric.Metrics) {
	w.gateway.reader.Read(metrics, time.Now(), func(i *series.Increment) series.Recorded {
		if i.Part == series.PartRequests {
			w.gateway.requests += float64(i.Requests)
		}
		return series.Recorded{}
	})
	if w.expiration > 0 { // the sinks forget a series that expires and comes back
		return
	}
	if want := w.gateway.before + w.sinks.total(); w.gateway.requests != want {
		w.failf("a gateway has %v requests, want %v", w.gateway.requests, want)
	}
}

func (s *sinks) total() (n float64) {
	for name, v := range s.values {
		if strings.HasPrefix(name, requestsMetric) {
			n += v
		}
	}
	return n
}
