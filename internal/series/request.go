package series

import "time"

// Request is what one finished request contributes. The zero value contributes
// nothing but itself. An Engine keeps no reference to anything in it.
type Request struct {
	// Dimensions holds the values of the configured dimensions in their order;
	// one the request does not have is empty.
	Dimensions []string
	Vantage    string
	Outcome    Outcome

	// Arrival is when the request arrived here: the time its windows go by,
	// whatever the clocks of the services say.
	Arrival time.Time
	// TraceID and SpanID make the request an exemplar, unless TraceID is zero.
	TraceID [16]byte
	SpanID  [8]byte
	// Verdicts are those of the service level objectives that apply to it.
	Verdicts Verdicts

	values        [singleValues]optional
	distributions [quantities - singleValues]Distribution
	counts        [counts]optional
}

// Distribution is the distribution of one quantity within one request.
type Distribution struct {
	// Sketch is encoded as package sketch does it.
	Sketch []byte
	// Max is the largest value, which the exemplar shows. Without one there is
	// no exemplar.
	Max float64
}

type optional struct {
	value   float64
	present bool
}

// SetValue gives the request's value of a quantity that has one value per
// request. It is finite and not negative.
func (r *Request) SetValue(q Quantity, v float64) { r.values[q] = optional{v, true} }

// Value returns what SetValue gave, if it did.
func (r *Request) Value(q Quantity) (v float64, present bool) {
	return r.values[q].value, r.values[q].present
}

// SetDistribution gives the request's own distribution of a quantity that has
// one: InterTokenLatency or InterChunkLatency.
func (r *Request) SetDistribution(q Quantity, d Distribution) {
	r.distributions[q-singleValues] = d
}

// Distribution returns what SetDistribution gave. Its sketch is empty if it did
// not.
func (r *Request) Distribution(q Quantity) *Distribution {
	return &r.distributions[q-singleValues]
}

// SetCount gives what the request adds to its series' sum: a whole number of
// tokens or stalls, or seconds. It is finite and not negative.
func (r *Request) SetCount(c Count, n float64) { r.counts[c] = optional{n, true} }

// Count returns what SetCount gave, if it did.
func (r *Request) Count(c Count) (n float64, present bool) {
	return r.counts[c].value, r.counts[c].present
}
