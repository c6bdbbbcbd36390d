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
const version = 1

// AppendBinary appends the whole state of the pair in the form that Decode reads: a version byte,
// then the fields in the order of their declaration. Numbers are varints, those with a sign in
// zigzag form, and floats have 64 bits, little endian. Lists start with their length.
func (p *Pair) AppendBinary(dst []byte) []byte {
	e := encoder{append(dst, version)}
	e.float(p.settings.Percentile)
	e.float(p.settings.Tolerance)
	e.signed(p.since.Unix())
	e.number(uint64(p.since.Nanosecond()))
	e.signed(p.clock)
	e.number(uint64(len(p.open)))
	for _, w := range p.open {
		e.signed(w.start)
		e.number(uint64(w.length))
		for arm := range w.arms {
			appendEntries(&e, w.arms[arm], (*encoder).group)
		}
	}
	for i := range p.arms {
		t := &p.arms[i]
		e.number(t.requests)
		e.trials(t.judged)
		e.number(t.ungrouped)
		e.number(t.replicas)
		values := t.values.AppendBinary(nil)
		e.number(uint64(len(values)))
		e.dst = append(e.dst, values...)
	}
	for i := range p.tests {
		for _, v := range p.tests[i].likelihood {
			e.float(v)
		}
		for _, s := range p.tests[i].spreads {
			e.float(s.chiSquare)
			e.number(s.freedom)
		}
	}
	for i := range p.blocks {
		e.signed(p.blocks[i].start)
		for arm := range p.blocks[i].arms {
			appendEntries(&e, p.blocks[i].arms[arm], (*encoder).observation)
		}
	}
	e.number(uint64(len(p.recent)))
	for i := range p.recent {
		e.signed(p.recent[i].start)
		e.number(uint64(p.recent[i].length))
		e.distribution(p.recent[i].values)
	}
	e.number(p.windows)
	e.number(p.badBlocks)
	return e.dst
}

// Decode reads the output of AppendBinary.
func Decode(encoded []byte) (*Pair, error) {
	if len(encoded) == 0 || encoded[0] != version {
		return nil, fmt.Errorf("unknown version of a pair; this build reads version %d", version)
	}
	d := decoder{rest: encoded[1:]}
	p := &Pair{settings: Settings{Percentile: d.float(), Tolerance: d.float()}}
	p.since = time.Unix(d.time(), int64(d.number(1e9-1)))
	p.clock = d.time()
	for range d.number(maxOpen) {
		w := &window{start: d.time(), length: d.length()}
		for arm := range w.arms {
			w.arms[arm] = decodeEntries(&d, (*decoder).group)
		}
		d.check(floor(w.start, w.length) == w.start && w.start <= p.clock && w.end()+closingDelay > p.clock)
		d.check(len(p.open) == 0 || p.open[len(p.open)-1].compare(w) < 0)
		p.open = append(p.open, w)
	}
	for i := range p.arms {
		t := &p.arms[i]
		t.requests = d.number(math.MaxUint64)
		t.judged = d.trials()
		t.ungrouped = d.number(math.MaxUint64)
		t.replicas = d.number(maxReplicas)
		d.check(t.values.MergeBinary(d.bytes(d.number(math.MaxInt32))) == nil)
	}
	for i := range p.tests {
		for j := range p.tests[i].likelihood {
			p.tests[i].likelihood[j] = d.float()
		}
		for j := range p.tests[i].spreads {
			p.tests[i].spreads[j] = spread{d.float(), d.number(math.MaxUint64)}
		}
	}
	for i := range p.blocks {
		p.blocks[i].start = d.time()
		for arm := range p.blocks[i].arms {
			p.blocks[i].arms[arm] = decodeEntries(&d, (*decoder).observation)
		}
	}
	for range d.number(maxRecent) {
		p.recent = append(p.recent, closedValues{d.time(), d.length(), d.distribution()})
	}
	p.windows = d.number(math.MaxInt)
	p.badBlocks = d.number(math.MaxUint64)
	if d.failed || len(d.rest) > 0 {
		return nil, errMalformed
	}
	return p, nil
}

var errMalformed = errors.New("pair is truncated or malformed")

type encoder struct{ dst []byte }

func (e *encoder) number(n uint64) { e.dst = binary.AppendUvarint(e.dst, n) }
func (e *encoder) signed(n int64)  { e.dst = binary.AppendVarint(e.dst, n) }
func (e *encoder) float(v float64) {
	e.dst = binary.LittleEndian.AppendUint64(e.dst, math.Float64bits(v))
}

func (e *encoder) trials(t trials) {
	e.number(t.n)
	e.number(t.bad)
}

func (e *encoder) group(g *group) {
	c := &g.counts
	for _, n := range [...]uint64{c.Requests, c.Eligible, c.Bad, c.Unmeasured, c.Unsuccessful, c.Mistakes} {
		e.number(n)
	}
	e.distribution(g.values)
}

func (e *encoder) observation(o *observation) {
	for _, t := range o {
		e.trials(t)
	}
}

func (e *encoder) distribution(d distribution) {
	e.number(uint64(len(d)))
	for _, b := range d {
		e.signed(int64(b.index))
		e.number(uint64(b.n))
	}
}

func appendEntries[T any](e *encoder, list []entry[T], value func(*encoder, *T)) {
	e.number(uint64(len(list)))
	for i := range list {
		e.number(list[i].replica)
		value(e, &list[i].value)
	}
}

// decoder reads what an encoder wrote. After a malformed value, all further ones are 0.
type decoder struct {
	rest   []byte
	failed bool
}

// check fails if ok is false.
func (d *decoder) check(ok bool) {
	if !ok {
		d.failed, d.rest = true, nil
	}
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.check(false)
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// number returns a number of at most most.
func (d *decoder) number(most uint64) uint64 {
	n, width := binary.Uvarint(d.rest)
	if width <= 0 || n > most {
		d.check(false)
		return 0
	}
	d.rest = d.rest[width:]
	return n
}

func (d *decoder) time() int64 {
	const most = 1 << 40 // seconds: sums of times do not overflow
	n, width := binary.Varint(d.rest)
	if width <= 0 || n < -most || n > most {
		d.check(false)
		return 0
	}
	d.rest = d.rest[width:]
	return n
}

func (d *decoder) length() int64 {
	n := d.number(longWindow)
	d.check(n == shortWindow || n == longWindow)
	return max(int64(n), shortWindow)
}

// float returns a finite number.
func (d *decoder) float() float64 {
	b := d.bytes(8)
	if b == nil {
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(b))
	d.check(!math.IsNaN(v) && !math.IsInf(v, 0))
	return v
}

func (d *decoder) trials() trials {
	const most = 1 << 56 // sums do not overflow
	t := trials{d.number(most), d.number(most)}
	d.check(t.bad <= t.n)
	return t
}

func (d *decoder) group() (g group) {
	c := &g.counts
	for _, n := range [...]*uint64{&c.Requests, &c.Eligible, &c.Bad, &c.Unmeasured, &c.Unsuccessful, &c.Mistakes} {
		*n = d.number(maxCount)
	}
	g.values = d.distribution()
	return g
}

func (d *decoder) observation() (o observation) {
	for i := range o {
		o[i] = d.trials()
	}
	return o
}

func (d *decoder) distribution() (all distribution) {
	for range d.number(maxBuckets) {
		index := d.time()
		b := bucket{int16(index), uint32(d.number(maxCount))}
		d.check(int64(b.index) == index && b.n > 0 && (index == zeroIndex || sketchIndex(index)))
		d.check(len(all) == 0 || all[len(all)-1].index < b.index)
		all = append(all, b)
	}
	return all
}

// sketchIndex reports whether a sketch has a bucket.
func sketchIndex(index int64) bool {
	return index >= int64(sketch.Index(math.Nextafter(sketch.ZeroThreshold, 1))) && index <= int64(sketch.Index(sketch.MaxValue))
}

func decodeEntries[T any](d *decoder, value func(*decoder) T) (list []entry[T]) {
	for range d.number(maxReplicas + 1) {
		e := entry[T]{replica: d.number(math.MaxUint64)}
		e.value = value(d)
		d.check(len(list) == 0 || list[len(list)-1].replica < e.replica)
		list = append(list, e)
	}
	d.check(known(list) <= maxReplicas)
	return list
}
