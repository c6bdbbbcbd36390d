// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// BenchmarkPage_Series measures answers over a thousand and ten thousand series: ten times the series should take ten
// times as long.
func BenchmarkPage_Series(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		page := pageOfSeries(n)
		for _, question := range []string{"worst", "trends", "trends?by=tenant", "now"} {
			b.Run(fmt.Sprintf("%s/%d", question, n), func(b *testing.B) {
				handler := page.Handler()
				for i := range b.N {
					w := httptest.NewRecorder()
					request := httptest.NewRequest(http.MethodGet, "/api/v1/"+question, http.NoBody)
					page.answers = newAnswers()
					handler.ServeHTTP(w, request)
					if w.Code != http.StatusOK {
						b.Fatal(i, w.Body)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/series")
			})
		}
	}
}

// pageOfSeries returns a page of some series over five minutes: a tenant for every fifth, 20 replicas, 5 models.
func pageOfSeries(n int) *Page {
	now := time.Unix(1_795_233_300, 0)
	page, engine := pageWith(now, series.Config{Dimensions: series.DimensionsOf("gen_ai.request.model", "service.instance.id", "tenant"), MaxSeries: n})
	for age := 300; age > 0; age -= 30 {
		for i := range n {
			r := &series.Contribution{
				Dimensions: []string{"model-" + strconv.Itoa(i%5), "replica-" + strconv.Itoa(i/5%20), "tenant-" + strconv.Itoa(i/5)},
				Vantage:    "server", Arrival: now.Add(-time.Duration(age) * time.Second),
			}
			r.SetValue(numbers.RequestDuration, 1)
			r.SetValue(numbers.TimeToFirstToken, 0.2+float64(i%100)/100)
			r.SetValue(numbers.TimePerOutputToken, 0.01+float64(i%37)/1000)
			r.Verdicts.Add("fast", slo.Good)
			engine.Record(r)
		}
	}
	return page
}
