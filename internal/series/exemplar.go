package series

import "time"

// Exemplar is one request that stands for a classic bucket: the latest that fell
// into it. Of a request with many values in a histogram it is the largest.
type Exemplar struct {
	TraceID [16]byte
	SpanID  [8]byte
	Value   float64
	// UnixNano is when the request arrived.
	UnixNano int64
}

// Time returns when the request arrived.
func (e *Exemplar) Time() time.Time { return time.Unix(0, e.UnixNano) }

// Set tells whether there is an exemplar.
func (e *Exemplar) Set() bool { return e.TraceID != [16]byte{} }
