// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// version is the first byte of what AppendBinary writes.
const version = 1

// saved is a Limit without its time to forget, which may change.
type saved struct {
	Objective float64
	Recent    mix
	Learned   [2]savedLearned
}

type savedLearned struct {
	Reference mix
	Bottom    int32
	Bins      [binCount]savedBin
}

type savedBin struct {
	Slots, Requests, Bad, Missed float32
	MissedAt                     int64
}

// AppendBinary appends what the limit has learned, under 5 KiB. The averages of replicas are not part of it.
func (l *Limit) AppendBinary(dst []byte) []byte {
	s := saved{Objective: l.objective, Recent: l.recent}
	for i, k := range [...]*learned{&l.learned, &l.other} {
		to := &s.Learned[i]
		to.Reference, to.Bottom = k.reference, int32(k.curve.bottom)
		for j, b := range k.curve.bins {
			to.Bins[j] = savedBin{float32(b.Slots), float32(b.Requests), float32(b.Bad), float32(b.Missed), b.MissedAt}
		}
	}
	dst, err := binary.Append(append(dst, version), binary.LittleEndian, &s)
	if err != nil {
		panic(err) // saved has fields of fixed size only
	}
	return dst
}

var errMalformed = errors.New("learned state of a capacity is truncated or malformed")

// Restore reads what AppendBinary wrote into a new limit, whose objective must be the same. After an error, the limit is unchanged.
func (l *Limit) Restore(encoded []byte) error {
	if len(encoded) == 0 || encoded[0] != version {
		return fmt.Errorf("unknown version of a capacity's learned state; this build reads version %d", version)
	}
	var s saved
	if n, err := binary.Decode(encoded[1:], binary.LittleEndian, &s); err != nil || n != len(encoded)-1 || !s.valid() {
		return errMalformed
	}
	if s.Objective != l.objective {
		return fmt.Errorf("capacity was learned for objective %v, not %v", s.Objective, l.objective)
	}
	l.recent = s.Recent
	for i, k := range [...]*learned{&l.learned, &l.other} {
		from := &s.Learned[i]
		k.reference, k.curve.bottom = from.Reference, int(from.Bottom)
		for j, b := range from.Bins {
			k.curve.bins[j] = bin{float64(b.Slots), float64(b.Requests), float64(b.Bad), float64(b.Missed), b.MissedAt}
		}
	}
	return nil
}

// valid reports whether all numbers are such as a limit may learn.
func (s *saved) valid() bool {
	ok := s.Recent.valid()
	for i := range s.Learned {
		k := &s.Learned[i]
		ok = ok && k.Reference.valid() && k.Bottom >= -2000 && k.Bottom <= 2000
		for _, b := range k.Bins {
			const rounded = 1.001
			ok = ok && within(float64(b.Requests), 1e18) && within(float64(b.Bad), rounded*float64(b.Requests)) &&
				within(float64(b.Slots), 1e9) && within(float64(b.Missed), rounded*float64(b.Slots)) && b.MissedAt >= 0
		}
	}
	return ok
}

func (m *mix) valid() bool {
	ok := true
	for _, v := range m {
		ok = ok && within(v, 1e24)
	}
	return ok
}

// within reports whether x is between 0 and a bound. NaN is not.
func within(x, most float64) bool { return !math.IsNaN(x) && x >= 0 && x <= most }
