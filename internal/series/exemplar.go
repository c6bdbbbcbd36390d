// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import "time"

// Exemplar is the latest request in a classic bucket, or the latest that breached an SLO.
// A request with many values in a histogram counts with its largest value.
type Exemplar struct {
	TraceID [16]byte
	SpanID  [8]byte
	Value   float64
	// UnixNano is the arrival of the request.
	UnixNano int64
}

// Time returns the arrival of the request.
func (e *Exemplar) Time() time.Time { return time.Unix(0, e.UnixNano) }

// Set reports whether there is an exemplar.
func (e *Exemplar) Set() bool { return e.TraceID != [16]byte{} }
