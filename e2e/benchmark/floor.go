// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// tallies is the least that a Go program does to make histograms of whole streams: it reads the fields that it
// needs from the bytes, and adds to arrays. It checks, limits, deduplicates and publishes nothing.
type tallies struct {
	bodies sync.Pool // of *bytes.Buffer

	mu      sync.Mutex
	byModel map[string]*tally
}

// tally has buckets of a width of 0.8% by the bits of seconds: exponents and the first seven bits of the mantissa.
type tally struct {
	requests                                          uint64
	firstToken, perOutputToken, interToken, toTheLast [1 << 13]uint64
}

func bucket(nanos float64) int {
	const least = 1023 - 40 // the exponent of 2^-40 s
	return int(math.Float64bits(nanos/1e9)>>45) - least<<7
}

func (t *tallies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := t.bodies.Get().(*bytes.Buffer)
	if body == nil {
		body = new(bytes.Buffer)
	}
	defer t.bodies.Put(body)
	body.Reset()
	_, err := io.Copy(body, r.Body)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		err = t.addRequest(body.Bytes())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// fieldsOf calls visit with the number and value of each field. Numbers are in n, and nested messages in value.
func fieldsOf(message []byte, visit func(number protowire.Number, n uint64, value []byte) error) error {
	for len(message) > 0 {
		number, wireType, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		var n uint64
		var value []byte
		switch wireType {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(message)
		case protowire.Fixed64Type:
			n, size = protowire.ConsumeFixed64(message)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(message)
		default:
			return errors.New("unexpected field")
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if err := visit(number, n, value); err != nil {
			return err
		}
	}
	return nil
}

// addRequest adds the streams of an ExportTokenStreamsRequest.
func (t *tallies) addRequest(message []byte) error {
	return fieldsOf(message, func(_ protowire.Number, _ uint64, resource []byte) error {
		return fieldsOf(resource, func(number protowire.Number, _ uint64, stream []byte) error {
			if number != 2 {
				return nil
			}
			return t.addStream(stream)
		})
	})
}

func (t *tallies) addStream(message []byte) error {
	var start uint64
	var of *tally
	return fieldsOf(message, func(number protowire.Number, _ uint64, value []byte) error {
		switch number {
		case 2:
			return fieldsOf(value, func(number protowire.Number, n uint64, value []byte) error {
				switch number {
				case 1:
					start = n
				case 6:
					if model := modelOf(value); model != nil {
						of = t.of(model)
					}
				}
				return nil
			})
		case 4:
			return of.addRun(start, value)
		}
		return nil
	})
}

// modelOf returns the value of an attribute that is the model.
func modelOf(attribute []byte) (model []byte) {
	is := false
	_ = fieldsOf(attribute, func(number protowire.Number, _ uint64, value []byte) error {
		if number == 1 {
			is = string(value) == "gen_ai.request.model"
		} else if is {
			return fieldsOf(value, func(_ protowire.Number, _ uint64, text []byte) error { model = text; return nil })
		}
		return nil
	})
	return model
}

func (t *tallies) of(model []byte) *tally {
	of := t.byModel[string(model)]
	if of == nil {
		of = new(tally)
		t.byModel[string(model)] = of
	}
	return of
}

// addRun adds the only run of chunks of a stream.
func (t *tally) addRun(start uint64, run []byte) error {
	var first, unit uint64
	return fieldsOf(run, func(number protowire.Number, n uint64, value []byte) error {
		switch number {
		case 2:
			first = n
		case 3:
			unit = n
		case 4:
			last, chunks := first, 0
			for ; len(value) > 0; chunks++ {
				delta, size := protowire.ConsumeVarint(value)
				if size < 0 {
					return protowire.ParseError(size)
				}
				value = value[size:]
				if chunks > 0 {
					gap := uint64(protowire.DecodeZigZag(delta)) * unit
					last += gap
					t.interToken[bucket(float64(gap))]++
				}
			}
			t.requests++
			t.firstToken[bucket(float64(first-start))]++
			t.toTheLast[bucket(float64(last-start))]++
			if chunks > 1 {
				t.perOutputToken[bucket(float64(last-first)/float64(chunks-1))]++
			}
		}
		return nil
	})
}
