// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
)

// scraperHeader is the header by which Prometheus, and what scrapes like it, is known. It has the time after
// which the scraper gives up.
const scraperHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// maxAtOnce is the number of bytes up to which responses are sent at the same time. Larger ones take turns:
// together, they would all end too late.
const maxAtOnce = 64 << 20

// metrics serves the metrics: to Prometheus with new counters at 0, to all others as they are.
func (e *tokenSLI) metrics() http.Handler {
	large := make(chan struct{}, 1) // has an element while a larger response is sent
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), e.waitTime(r.Header))
		defer cancel()
		format, gzip := formatOf(r.Header), acceptsGzip(r.Header)
		wanted := variant{exposition.Format{Type: format.FormatType(), Gzip: gzip}, r.Header.Get(scraperHeader) != ""}
		body, err := e.renderings.get(ctx, wanted)
		if err == nil && body.Size() > maxAtOnce {
			select {
			case large <- struct{}{}:
				defer func() { <-large }()
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		switch {
		case err == nil:
			w.Header().Set("Content-Type", string(format))
			if gzip {
				w.Header().Set("Content-Encoding", "gzip")
			}
			_, _ = body.WriteTo(w) // the client went away, or was too slow
		case errors.Is(err, context.DeadlineExceeded):
			http.Error(w, "token_sli: the metrics are not ready in time; scrape with a longer timeout and `Accept-Encoding: gzip`, "+
				"or lower max_series", http.StatusServiceUnavailable)
		case errors.Is(err, errClosed):
			http.Error(w, "token_sli: "+err.Error(), http.StatusServiceUnavailable)
		default:
			http.Error(w, "token_sli: cannot render the metrics: "+err.Error(), http.StatusInternalServerError)
		}
	})
}

// waitTime returns how long a scrape waits until its response begins. The rest of its time is for sending it.
func (e *tokenSLI) waitTime(header http.Header) time.Duration {
	limit := e.scrapeTime
	if seconds, err := strconv.ParseFloat(header.Get(scraperHeader), 64); err == nil && seconds > 0 && seconds < limit.Seconds() {
		limit = time.Duration(seconds * float64(time.Second))
	}
	return limit / 5 * 4
}

// formatOf returns the format of a response. For formats that only people read, it is the text.
func formatOf(header http.Header) expfmt.Format {
	switch format := expfmt.NegotiateIncludingOpenMetrics(header); format.FormatType() {
	case expfmt.TypeTextPlain, expfmt.TypeOpenMetrics, expfmt.TypeProtoDelim:
		return format
	default:
		return expfmt.NewFormat(expfmt.TypeTextPlain)
	}
}

// acceptsGzip reports whether the client reads gzip.
func acceptsGzip(header http.Header) bool {
	for _, encodings := range header.Values("Accept-Encoding") {
		for encoding := range strings.SplitSeq(encodings, ",") {
			name, weight, _ := strings.Cut(encoding, ";")
			if name := strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && name != "*" {
				continue
			}
			_, q, given := strings.Cut(weight, "q=")
			if refused, err := strconv.ParseFloat(strings.TrimSpace(q), 64); !given || err == nil && refused > 0 {
				return true
			}
		}
	}
	return false
}
