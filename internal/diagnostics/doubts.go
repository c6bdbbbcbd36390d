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
	// Message says what is wrong, and the remedy.
	Message string
	// About names what the message is about, such as an upstream. It may be empty.
	About string
	// Since is the time at which the doubt was first raised, Last that at which it was last raised.
	Since, Last time.Time
}

// Doubts holds the doubts of a component, and logs each once. What doubts are about comes from the
// configuration, which limits their number. It is safe for concurrent use.
type Doubts struct {
	logger *zap.Logger
	now    func() time.Time

	// mu guards held, by Message and About.
	mu   sync.Mutex
	held map[[2]string]*Doubt
}

// NewDoubts returns an empty list.
func NewDoubts(logger *zap.Logger, now func() time.Time) *Doubts {
	return &Doubts{logger: logger, now: now, held: map[[2]string]*Doubt{}}
}

// Raise adds a doubt. Raise it again while its cause lasts. The fields are logged only.
func (d *Doubts) Raise(message, about string, fields ...zap.Field) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := [2]string{message, about}, d.now()
	if held := d.held[key]; held != nil {
		held.Last = now
		return
	}
	d.held[key] = &Doubt{message, about, now, now}
	d.logger.Warn(message, fields...)
}

// lapse is the time after which a doubt that is not raised again is gone.
const lapse = 5 * time.Minute

// Current returns the doubts that were raised in the last five minutes, oldest first.
func (d *Doubts) Current() (all []Doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, held := range d.held {
		if d.now().Sub(held.Last) <= lapse {
			all = append(all, *held)
		}
	}
	slices.SortFunc(all, func(a, b Doubt) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Message+a.About, b.Message+b.About))
	})
	return all
}
