// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Histogram is a distribution. In JSON it has the form of an OpenTelemetry exponential histogram, so that others can merge
// it, and percentiles for those who only read it.
type Histogram struct{ values *sketch.Sketch }

// histogram is the JSON of a Histogram: bucket i of Counts holds the values from 2^((Offset+i)/2^Scale), excluded, to
// 2^((Offset+i+1)/2^Scale).
type histogram struct {
	Count  uint64   `json:"count"`
	Sum    float64  `json:"sum"`
	Min    float64  `json:"min"`
	Max    float64  `json:"max"`
	P50    float64  `json:"p50"`
	P95    float64  `json:"p95"`
	P99    float64  `json:"p99"`
	Scale  int      `json:"scale"`
	Zeros  uint64   `json:"zero_count"`
	Offset int32    `json:"offset"`
	Counts []uint64 `json:"bucket_counts"`
}

// MarshalJSON encodes a distribution, which is not empty.
func (h Histogram) MarshalJSON() ([]byte, error) {
	s := h.values
	q := []float64{0.5, 0.95, 0.99}
	s.Quantiles(q)
	encoded := histogram{
		Count: s.Count(), Sum: s.Sum(), Min: s.Min(), Max: s.Max(), P50: q[0], P95: q[1], P99: q[2],
		Scale: sketch.Scale, Zeros: s.Zeros(), Counts: []uint64{},
	}
	for index, n := range s.Buckets() {
		if len(encoded.Counts) == 0 {
			encoded.Offset = int32(index) //nolint:gosec // an index lies within ±1920
		}
		for len(encoded.Counts) < index-int(encoded.Offset) {
			encoded.Counts = append(encoded.Counts, 0)
		}
		encoded.Counts = append(encoded.Counts, n)
	}
	return json.Marshal(encoded)
}

// UnmarshalJSON decodes a distribution, and rejects one that contradicts itself.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var encoded histogram
	if err := json.Unmarshal(text, &encoded); err != nil {
		return err
	}
	if encoded.Scale != sketch.Scale {
		return fmt.Errorf("a histogram has scale %d, but this version reads only %d", encoded.Scale, sketch.Scale)
	}
	h.values = &sketch.Sketch{}
	return h.values.Load(&sketch.Parts{
		Zeros: encoded.Zeros, Offset: encoded.Offset, Counts: slices.All(encoded.Counts),
		Sum: encoded.Sum, Min: encoded.Min, Max: encoded.Max,
	})
}
