// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import "github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"

// reservation is the memory of a request in progress that counts toward
// max_memory_mib. It is not safe for concurrent use.
type reservation struct {
	store *assembly.Store
	used  int64 // bytes
	held  int64 // reserved in the store: used, rounded up
}

// reservationStep is the minimum growth of a reservation in bytes.
const reservationStep = 4 << 10

// add reserves more bytes, or returns the error of Store.Reserve. Negative bytes are
// released.
func (r *reservation) add(bytes int64) error {
	used := r.used + bytes
	if bytes < 0 {
		r.store.Release(r.held - used)
		r.used, r.held = used, used
		return nil
	}
	if used > r.held {
		// Growing by a quarter keeps requests from contending for the store's counter.
		more := max(used-r.held, r.held/4, reservationStep)
		if err := r.store.Reserve(r.held, more); err != nil {
			return err
		}
		r.held += more
	}
	r.used = used
	return nil
}

// free ends the reservation.
func (r *reservation) free() {
	if r.held > 0 {
		r.store.Release(r.held)
	}
	r.used, r.held = 0, 0
}
