// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import "sync/atomic"

// Lacking counts requests that lack something, until the first that has it. It takes no lock, and is safe for concurrent
// use. The zero value has counted none.
type Lacking struct {
	met   atomic.Bool
	count atomic.Int64
}

// maxLacking is as many as any row needs. It ends the count: a counter that every request writes would contend.
const maxLacking = 100

// Has is called for a request that has it.
func (l *Lacking) Has() {
	if !l.met.Load() {
		l.met.Store(true)
	}
}

// Lacks is called for a request that lacks it.
func (l *Lacking) Lacks() {
	if !l.met.Load() && l.count.Load() < maxLacking {
		l.count.Add(1)
	}
}

// Met reports whether a request had it.
func (l *Lacking) Met() bool { return l.met.Load() }

// Facts returns the requests that lacked it, and one more if one had it. Ran is up to the caller.
func (l *Lacking) Facts() Facts {
	f := Facts{Cases: l.count.Load()}
	f.All = f.Cases
	if l.Met() {
		f.All++
	}
	return f
}
