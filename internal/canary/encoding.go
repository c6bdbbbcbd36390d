// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// version is the first byte of an encoded pair.
const version = 3

// AppendBinary appends the whole state of the pair in the form that Decode reads: a version byte,
// then the fields in the order of their declaration. Numbers are varints, those with a sign in
// zigzag form, and floats have 64 bits, little endian. Lists start with their length.
func (p *Pair) AppendBinary(dst []byte) []byte {
	c := codec{bytes: append(dst, version)}
	c.pair(p)
	return c.bytes
}

// Decode reads the output of AppendBinary.
func Decode(encoded []byte) (*Pair, error) {
	if len(encoded) == 0 || encoded[0] != version {
		return nil, fmt.Errorf("unknown version of a pair; this build reads version %d", version)
	}
	c, p := codec{bytes: encoded[1:], reads: true}, new(Pair)
	c.pair(p)
	if c.failed || len(c.bytes) > 0 {
		return nil, errMalformed
	}
	return p, nil
}

var errMalformed = errors.New("pair is truncated or malformed")

// codec writes values, or reads them into the same places, so that each format is in one function. After a
// malformed value, it reads nothing more.
type codec struct {
	bytes  []byte // written, or left to read
	reads  bool
	failed bool
}

func (c *codec) pair(p *Pair) {
	c.float(&p.settings.Percentile)
	c.float(&p.settings.Tolerance)
	since, nanoseconds := p.since.Unix(), uint64(p.since.Nanosecond())
	c.time(&since)
	c.number(&nanoseconds, 1e9-1)
	if c.reads {
		p.since = time.Unix(since, int64(nanoseconds))
	}
	c.time(&p.clock)
	list(c, &p.open, maxOpen, func(i int) {
		if c.reads {
			p.open[i] = new(window)
		}
		w := p.open[i]
		c.span(&w.start, &w.length)
		for arm := range w.arms {
			entries(c, &w.arms[arm], (*codec).group)
		}
		c.check(floor(w.start, w.length) == w.start && w.start <= p.clock && w.end()+closingDelay > p.clock)
		c.check(i == 0 || p.open[i-1].compare(w) < 0)
	})
	for i := range p.arms {
		t := &p.arms[i]
		c.number(&t.requests, math.MaxUint64)
		c.trials(&t.judged)
		c.number(&t.replicas, maxReplicas)
		c.sketch(&t.values)
	}
	for i := range p.tests {
		for j := range p.tests[i].likelihood {
			c.float(&p.tests[i].likelihood[j])
		}
		for j := range p.tests[i].spreads {
			c.float(&p.tests[i].spreads[j].chiSquare)
			c.number(&p.tests[i].spreads[j].freedom, math.MaxUint64)
		}
	}
	for i := range p.blocks {
		c.time(&p.blocks[i].start)
		for arm := range p.blocks[i].arms {
			entries(c, &p.blocks[i].arms[arm], (*codec).observation)
		}
	}
	list(c, &p.recent, maxRecent, func(i int) {
		c.span(&p.recent[i].start, &p.recent[i].length)
		c.distribution(&p.recent[i].values)
	})
	c.number(&p.windows, math.MaxInt)
	c.number(&p.badBlocks, math.MaxUint64)
}

// check fails if ok is false.
func (c *codec) check(ok bool) bool {
	if c.reads && !ok {
		c.failed, c.bytes = true, nil
	}
	return ok
}

// number is one of at most most.
func (c *codec) number(n *uint64, most uint64) {
	if !c.reads {
		c.bytes = binary.AppendUvarint(c.bytes, *n)
		return
	}
	v, width := binary.Uvarint(c.bytes)
	if c.check(width > 0 && v <= most) {
		*n, c.bytes = v, c.bytes[width:]
	}
}

// time is one in seconds, or another number with a sign.
func (c *codec) time(n *int64) {
	const most = 1 << 40 // sums of times do not overflow
	if !c.reads {
		c.bytes = binary.AppendVarint(c.bytes, *n)
		return
	}
	v, width := binary.Varint(c.bytes)
	if c.check(width > 0 && -most <= v && v <= most) {
		*n, c.bytes = v, c.bytes[width:]
	}
}

// span is the start and length of a window.
func (c *codec) span(start, length *int64) {
	c.time(start)
	n := uint64(*length)
	c.number(&n, longWindow)
	c.check(n == shortWindow || n == longWindow)
	*length = max(int64(n), shortWindow)
}

// float is a finite number.
func (c *codec) float(v *float64) {
	if !c.reads {
		c.bytes = binary.LittleEndian.AppendUint64(c.bytes, math.Float64bits(*v))
		return
	}
	if c.check(len(c.bytes) >= 8) {
		*v, c.bytes = math.Float64frombits(binary.LittleEndian.Uint64(c.bytes)), c.bytes[8:]
		c.check(!math.IsNaN(*v) && !math.IsInf(*v, 0))
	}
}

func (c *codec) trials(t *trials) {
	const most = 1 << 56 // sums do not overflow
	c.number(&t.n, most)
	c.number(&t.bad, most)
	c.check(t.bad <= t.n)
}

func (c *codec) sketch(s *sketch.Sketch) {
	if !c.reads {
		encoded := s.AppendBinary(nil)
		c.bytes = append(binary.AppendUvarint(c.bytes, uint64(len(encoded))), encoded...)
		return
	}
	var n uint64
	c.number(&n, uint64(len(c.bytes)))
	if c.check(n <= uint64(len(c.bytes))) && c.check(s.MergeBinary(c.bytes[:n]) == nil) {
		c.bytes = c.bytes[n:]
	}
}

func (c *codec) group(g *group) {
	of := &g.counts
	for _, n := range [...]*uint64{&of.Requests, &of.Eligible, &of.Bad, &of.Unmeasured, &of.Unsuccessful, &of.Mistakes} {
		c.number(n, maxCount)
	}
	c.distribution(&g.values)
}

func (c *codec) observation(o *observation) {
	for i := range o {
		c.trials(&o[i])
	}
}

func (c *codec) distribution(d *distribution) {
	list(c, d, maxBuckets, func(i int) {
		b := &(*d)[i]
		index, n := int64(b.index), uint64(b.n)
		c.time(&index)
		c.number(&n, maxCount)
		b.index, b.n = int16(index), uint32(n)
		c.check(int64(b.index) == index && b.n > 0 && (b.index == zeroIndex || isSketchIndex(index)))
		c.check(i == 0 || (*d)[i-1].index < b.index)
	})
}

// isSketchIndex reports whether a sketch has a bucket.
func isSketchIndex(index int64) bool {
	return index >= int64(sketch.Index(math.Nextafter(sketch.ZeroThreshold, 1))) && index <= int64(sketch.Index(sketch.MaxValue))
}

func entries[T any](c *codec, all *[]entry[T], value func(*codec, *T)) {
	list(c, all, maxReplicas+1, func(i int) {
		e := &(*all)[i]
		c.number(&e.replica, math.MaxUint64)
		value(c, &e.value)
		c.check(i == 0 || (*all)[i-1].replica < e.replica)
	})
	c.check(known(*all) <= maxReplicas)
}

// list writes or reads the elements of a list of at most most.
func list[S ~[]T, T any](c *codec, all *S, most int, element func(i int)) {
	n := uint64(len(*all))
	c.number(&n, uint64(most))
	for i := 0; uint64(i) < n && !c.failed; i++ {
		if c.reads {
			*all = append(*all, *new(T))
		}
		element(i)
	}
}
