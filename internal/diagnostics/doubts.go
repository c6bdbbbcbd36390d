// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Doubt is a reason to doubt the numbers: a mistake of a pipeline that runs without an error.
type Doubt struct {
	// Message is that of the Mistake.
	Message string
	// About names what the message is about, such as an upstream. It may be empty.
	About string
	// Since is the time at which the doubt was first raised, Last that at which it was last raised.
	Since, Last time.Time
}

// Doubts holds the doubts of a component, and logs them. What doubts are about comes from the configuration, which limits
// their number, or is limited by maxNamed. It is safe for concurrent use.
type Doubts struct {
	logger *zap.Logger
	now    func() time.Time

	// mu guards held, by Message and About.
	mu   sync.Mutex
	held map[[2]string]*heldDoubt
}

type heldDoubt struct {
	Doubt
	logged time.Time
}

const (
	// maxNamed is the number of things that a mistake's doubts are about, if senders choose their names.
	maxNamed = 8
	// repeatAfter is the time after which a mistake is logged again, if at all.
	repeatAfter = time.Minute
)

// NewDoubts returns an empty list.
func NewDoubts(logger *zap.Logger, now func() time.Time) *Doubts {
	return &Doubts{logger: logger, now: now, held: map[[2]string]*heldDoubt{}}
}

// Report raises a doubt if the facts show the mistake. Report them again while its cause lasts. The fields are logged only.
func (d *Doubts) Report(m Mistake, f Facts, about string, fields ...zap.Field) {
	if !m.SeenIn(f) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := d.key(m, about), d.now()
	held := d.held[key]
	if held == nil {
		held = &heldDoubt{Doubt: Doubt{Message: key[0], About: key[1], Since: now}}
		d.held[key] = held
	}
	held.Last = now
	if held.logged.IsZero() || rows[m].again && now.Sub(held.logged) >= repeatAfter {
		held.logged = now
		m.Log(d.logger, fields...)
	}
}

// key names a doubt: it has a general name beyond maxNamed. mu is held.
func (d *Doubts) key(m Mistake, about string) [2]string {
	key := [2]string{m.Message(), about}
	if rows[m].others == "" || d.held[key] != nil {
		return key
	}
	named := 0
	for other := range d.held {
		if other[0] == key[0] {
			named++
		}
	}
	if named >= maxNamed {
		key[1] = rows[m].others
	}
	return key
}

// lapse is the time after which a doubt that is not raised again is gone.
const lapse = 5 * time.Minute

// Current returns the doubts that were raised in the last five minutes, oldest first.
func (d *Doubts) Current() (all []Doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, held := range d.held {
		if d.now().Sub(held.Last) <= lapse {
			all = append(all, held.Doubt)
		}
	}
	slices.SortFunc(all, func(a, b Doubt) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Message+a.About, b.Message+b.About))
	})
	return all
}
