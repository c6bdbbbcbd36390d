package main

// path is one way of doing the work, measured as CPU time per unit of it.
type path struct {
	name   string
	unit   string // token, span or histogram
	binary string
	config string
	// prepare is done once, unmeasured. It may be nil.
	prepare func(c *collectorProcess) error
	do      action
	units   int // per action
	proofs  []proof
}

// measurement is what one round of a path came to.
type measurement struct {
	nanos  float64 // of CPU, per unit
	memory int     // peak, in bytes
}
