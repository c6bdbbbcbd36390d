// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import "github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"

// Reservation is the memory of a request in progress that counts toward
// max_memory_mib. It is not safe for concurrent use.
type Reservation struct {
	Store *assembly.Store
	used  int64 // bytes
	held  int64 // reserved in the store: used, rounded up
}

// reservationStep is the minimum growth of a reservation in bytes.
const reservationStep = 4 << 10

// Add reserves more bytes, or returns the error of Store.Reserve. Negative bytes are
// released.
func (r *Reservation) Add(bytes int64) error {
	used := r.used + bytes
	if bytes < 0 {
		r.Store.Release(r.held - used)
		r.used, r.held = used, used
		return nil
	}
	if used > r.held {
		// Growing by a quarter keeps requests from contending for the store's counter.
		more := max(used-r.held, r.held/4, reservationStep)
		if err := r.Store.Reserve(r.held, more); err != nil {
			return err
		}
		r.held += more
	}
	r.used = used
	return nil
}

// Free ends the reservation.
func (r *Reservation) Free() {
	if r.held > 0 {
		r.Store.Release(r.held)
	}
	r.used, r.held = 0, 0
}
