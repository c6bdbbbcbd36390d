// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// window holds the requests of both arms that started in it.
type window struct {
	start, length int64
	arms          [arms][]entry[group]
	// folded is the lowest hash of a replica that was folded for its values, or 0. It stays folded until the
	// window closes, so that its requests and its values count in the same group.
	folded [arms]uint64
}

// group is one replica's part of a window.
type group struct {
	counts Counts
	values distribution
}

// add adds requests of a replica, and returns how many requests of known replicas were folded.
func (w *window) add(arm Arm, replica uint64, c Counts, values *sketch.Sketch) (folded uint64) {
	list := &w.arms[arm]
	if first := w.folded[arm]; first > 0 && replica >= first {
		replica, folded = noReplica, c.Requests
	}
	g := at(list, replica)
	g.counts.add(c)
	if values != nil {
		g.values.addSketch(values)
	}
	if len(*list) > maxReplicas && known(*list) > maxReplicas {
		folded += fold(list).counts.Requests
	}
	for values != nil && buckets(*list) > maxArmBuckets {
		w.folded[arm] = (*list)[len(*list)-1].replica
		folded += fold(list).counts.Requests
	}
	return folded
}

func (w *window) end() int64 { return w.start + w.length }

func (w *window) compare(other *window) int {
	return cmp.Or(cmp.Compare(w.end(), other.end()), cmp.Compare(w.start, other.start))
}

func (g *group) merge(from *group) {
	g.counts.add(from.counts)
	for _, b := range from.values {
		g.values.add(b.index, uint64(b.n))
	}
}

const (
	// maxReplicas bounds the replicas of an arm that have an entry of their own.
	maxReplicas = 64
	// maxArmBuckets bounds the buckets of all replicas of an arm in a window, such as 64 replicas with 64 each.
	maxArmBuckets = 4096
	// noReplica has the requests of unknown replicas, and those of replicas that were folded.
	noReplica = 0
)

// entry is what a list holds of one replica. Lists are in the order of replicas.
type entry[T any] struct {
	replica uint64 // the hash of its name
	value   T
}

// at returns the value of a replica, and adds an entry if it has none.
func at[T any](list *[]entry[T], replica uint64) *T {
	i, found := slices.BinarySearchFunc(*list, replica, func(e entry[T], r uint64) int { return cmp.Compare(e.replica, r) })
	if !found {
		*list = slices.Insert(*list, i, entry[T]{replica: replica})
	}
	return &(*list)[i].value
}

// fold moves what the replica of the highest hash has to noReplica, and returns it. So the replicas of the
// lowest hashes keep their entries, the same ones in each list.
func fold[T any, P interface {
	*T
	merge(from *T)
}](list *[]entry[T],
) P {
	last := len(*list) - 1
	folded := (*list)[last].value
	*list = slices.Delete(*list, last, last+1)
	P(at(list, noReplica)).merge(&folded)
	return &folded
}

// buckets returns the number of buckets of all replicas.
func buckets(list []entry[group]) (n int) {
	for i := range list {
		n += len(list[i].value.values)
	}
	return n
}

// known returns the number of replicas that have an entry of their own.
func known[T any](list []entry[T]) uint64 {
	n := len(list)
	if n > 0 && list[0].replica == noReplica {
		n--
	}
	return uint64(n)
}

// hash returns the FNV-1a hash of a replica's name, which a restart does not change.
func hash(replica string) uint64 {
	if replica == "" {
		return noReplica
	}
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, c := range []byte(replica) {
		h = (h ^ uint64(c)) * prime
	}
	return max(h, noReplica+1)
}

// distribution counts values by the buckets of a sketch, in ascending order. It takes less memory
// than a sketch if there are few values.
type distribution []bucket

type bucket struct {
	index int16
	n     uint32
}

const (
	// maxBuckets bounds a distribution: eight octaves without a gap. Values of further buckets
	// count in the nearest one.
	maxBuckets = 512
	// zeroIndex stands for values that a sketch counts as zero.
	zeroIndex = math.MinInt16
)

func (d *distribution) add(index int16, n uint64) {
	i, found := slices.BinarySearchFunc(*d, index, func(b bucket, index int16) int { return cmp.Compare(b.index, index) })
	switch {
	case found:
	case len(*d) < maxBuckets:
		*d = slices.Insert(*d, i, bucket{index: index})
	case i == maxBuckets || i > 0 && index-(*d)[i-1].index < (*d)[i].index-index:
		i--
	}
	b := &(*d)[i]
	b.n = uint32(saturated(uint64(b.n), n))
}

func (d *distribution) addSketch(s *sketch.Sketch) {
	if n := s.Zeros(); n > 0 {
		d.add(zeroIndex, n)
	}
	for index, n := range s.Buckets() {
		d.add(int16(index), n)
	}
}

// addTo adds the values to a sketch.
func (d distribution) addTo(s *sketch.Sketch) {
	for _, b := range d {
		s.Add(b.middle(), uint64(b.n))
	}
}

// middle returns a value in the middle of the bucket.
func (b bucket) middle() float64 {
	if b.index == zeroIndex {
		return 0
	}
	return math.Sqrt(sketch.UpperBound(int(b.index)-1) * sketch.UpperBound(int(b.index)))
}

// over returns the number of values, and of those in buckets above an index.
func (d distribution) over(index int) (t trials) {
	for _, b := range d {
		t.n += uint64(b.n)
		if int(b.index) > index {
			t.bad += uint64(b.n)
		}
	}
	return t
}
