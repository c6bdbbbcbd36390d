// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// A cell is an encoded Sum whose parts are the outcomes: protobuf fields, of which empty
// ones are left out. Encoded, the few values of a slot take a tenth of the memory.
const (
	sloField     protowire.Number = 1
	countsField  protowire.Number = 1000 // and the following, by series.Count, as 64-bit floats
	outcomeField protowire.Number = 100  // times the outcome plus one: its requests
)

// runs are the distributions of a Part whose fields follow each other: the indexes from first to below end, and what the
// field of the first one adds to that of the outcome.
var runs = [...]struct {
	first, end int
	offset     protowire.Number
}{{0, firstTTFT, 1}, {firstTTFT, firstTPOT, 20}, {firstTPOT, distributions, 50}}

// indexOf returns the index of the distribution with a field, or -1.
func indexOf(field protowire.Number) int {
	for _, run := range runs {
		if i := run.first + int(field%outcomeField-run.offset); run.first <= i && i < run.end {
			return i
		}
	}
	return -1
}

// appendCell appends the sum as a cell.
func (s *Sum) appendCell(dst []byte) []byte {
	for i := range s.Parts {
		base, part := outcomeField*protowire.Number(i+1), &s.Parts[i]
		if n := s.Requests[i]; n > 0 {
			dst = protowire.AppendVarint(protowire.AppendTag(dst, base, protowire.VarintType), n)
		}
		for _, run := range runs {
			for j, values := range part[run.first:run.end] {
				dst = appendSketch(dst, base+run.offset+protowire.Number(j), values)
			}
		}
	}
	for c, n := range s.Counts {
		if n != 0 {
			dst = protowire.AppendTag(dst, countsField+protowire.Number(c), protowire.Fixed64Type)
			dst = protowire.AppendFixed64(dst, math.Float64bits(n))
		}
	}
	var entry []byte
	for name, verdicts := range s.SLOs {
		if *verdicts == (Verdicts{}) {
			continue
		}
		entry = protowire.AppendString(entry[:0], name)
		for _, n := range verdicts {
			entry = protowire.AppendVarint(entry, n)
		}
		dst = protowire.AppendBytes(protowire.AppendTag(dst, sloField, protowire.BytesType), entry)
	}
	return dst
}

// appendSketch appends a distribution: an encoded sketch or, if it has one value, this value as a 64-bit float, which
// takes a third.
func appendSketch(dst []byte, field protowire.Number, s *sketch.Sketch) []byte {
	switch {
	case s == nil || s.Count() == 0:
		return dst
	case s.Count() == 1:
		return protowire.AppendFixed64(protowire.AppendTag(dst, field, protowire.Fixed64Type), math.Float64bits(s.Max()))
	}
	var buffer [1024]byte
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), s.AppendBinary(buffer[:0]))
}

// Want selects what a Sum reads of a cell. Counts and SLOs are always read.
type Want struct {
	// Part is the index of the part that each outcome goes to. An outcome with Skip is left
	// out.
	Part [Outcomes]int
	// Quantities has a bit for each numbers.ID to read.
	Quantities uint32
	// Prompts is set to read the distributions by the length of the prompt.
	Prompts bool
}

// reads reports whether a Sum reads a distribution of a Part.
func (w *Want) reads(index int) bool {
	if index < Quantities {
		return w.Quantities>>series.HistoryQuantities[index]&1 != 0
	}
	return w.Prompts
}

// Skip leaves an outcome out.
const Skip = -1

// everything keeps the outcomes apart.
var everything = Want{Part: [Outcomes]int{0, 1, 2, 3}, Quantities: math.MaxUint32, Prompts: true}

var errMalformed = errors.New("malformed cell of the history")

// add adds a cell. After an error, part of the cell may have been added.
func (s *Sum) add(cell []byte, want *Want) error {
	for len(cell) > 0 {
		field, kind, n := protowire.ConsumeTag(cell)
		if n < 0 {
			return errMalformed
		}
		cell = cell[n:]
		switch kind {
		case protowire.VarintType:
			n = s.addRequests(field, cell, want)
		case protowire.Fixed64Type:
			n = s.addFloat(field, cell, want)
		case protowire.BytesType:
			n = s.addBytes(field, cell, want)
		default:
			n = -1
		}
		if n < 0 {
			return errMalformed
		}
		cell = cell[n:]
	}
	return nil
}

func (s *Sum) addRequests(field protowire.Number, cell []byte, want *Want) int {
	requests, n := protowire.ConsumeVarint(cell)
	outcome := int(field/outcomeField) - 1
	if outcome < 0 || outcome >= Outcomes || field%outcomeField != 0 {
		return -1
	}
	if want.Part[outcome] != Skip {
		s.Requests[outcome] += requests
	}
	return n
}

// addFloat adds a count, or a distribution that has one value.
func (s *Sum) addFloat(field protowire.Number, cell []byte, want *Want) int {
	bits, n := protowire.ConsumeFixed64(cell)
	v := math.Float64frombits(bits)
	if !(v >= 0) || math.IsInf(v, 0) {
		return -1
	}
	if count := field - countsField; count >= 0 && count < protowire.Number(Counts) {
		s.Counts[count] += v
		return n
	}
	into, ok := s.distribution(field, want)
	if !ok || v > sketch.MaxValue {
		return -1
	}
	if into != nil {
		into.Add(v, 1)
	}
	return n
}

func (s *Sum) addBytes(field protowire.Number, cell []byte, want *Want) int {
	value, n := protowire.ConsumeBytes(cell)
	if n < 0 {
		return n
	}
	if field == sloField {
		if !s.addSLO(value) {
			return -1
		}
		return n
	}
	into, ok := s.distribution(field, want)
	if !ok || into != nil && into.MergeBinary(value) != nil {
		return -1
	}
	return n
}

// distribution returns what to add the distribution with a field to, nil if it is not wanted. ok is false if there is no
// such field.
func (s *Sum) distribution(field protowire.Number, want *Want) (into *sketch.Sketch, ok bool) {
	outcome, index := int(field/outcomeField)-1, indexOf(field)
	if outcome < 0 || outcome >= Outcomes || index < 0 {
		return nil, false
	}
	part := want.Part[outcome]
	if part == Skip || !want.reads(index) {
		return nil, true
	}
	return allocated(&s.Parts[part][index]), true
}

func (s *Sum) addSLO(entry []byte) bool {
	name, n := protowire.ConsumeBytes(entry)
	if n < 0 {
		return false
	}
	var verdicts Verdicts
	for i := range verdicts {
		entry = entry[n:]
		if verdicts[i], n = protowire.ConsumeVarint(entry); n < 0 {
			return false
		}
	}
	AddVerdicts(&s.SLOs, name, &verdicts)
	return true
}
