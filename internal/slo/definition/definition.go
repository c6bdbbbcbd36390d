// Package definition knows which service level objectives the token_latency
// processors of this process define. An objective in the configuration of a
// token_sli component names one of them, and no component sees another's
// configuration: without this, a misspelt name would be an alert that never fires.
package definition

import (
	"maps"
	"slices"
	"sync"
)

var (
	mu        sync.Mutex
	processor int                  // number of the latest
	defined   = map[int][]string{} // by processor
)

// Announce tells what a processor defines, until withdraw is called. A Collector
// makes all components before it starts the first, so that whoever starts knows all.
func Announce(slos []string) (withdraw func()) {
	mu.Lock()
	defer mu.Unlock()
	processor++
	this := processor
	defined[this] = slos
	return func() {
		mu.Lock()
		defer mu.Unlock()
		delete(defined, this)
	}
}

// Defined returns the names that are defined, sorted, each once, and whether there
// is a processor at all: where there is none, spans come with verdicts of another
// Collector, and nobody here knows the names.
func Defined() (slos []string, anyProcessor bool) {
	mu.Lock()
	defer mu.Unlock()
	slos = slices.Concat(slices.Collect(maps.Values(defined))...)
	slices.Sort(slos)
	return slices.Compact(slos), len(defined) > 0
}
