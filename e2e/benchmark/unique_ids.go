// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
)

// idMark is the part of each ID of a load that differs in each request, because token_sli
// counts a request once. It has the length of a number as numberedBody writes it.
const idMark = "########"

// numberedBody is an encoded body with a number in each of its IDs. Writing a number is
// much cheaper than encoding, so the driver does not slow the Collector down.
type numberedBody struct {
	body   []byte
	places []int // of the number
	sent   int
}

func newNumberedBody(body []byte, first int) *numberedBody {
	n := &numberedBody{body: bytes.Clone(body), sent: first}
	for at := 0; ; at += len(idMark) {
		i := bytes.Index(body[at:], []byte(idMark))
		if i < 0 {
			return n
		}
		at += i
		n.places = append(n.places, at)
	}
}

// next returns the body with the next number. It is valid until the next call.
func (n *numberedBody) next() []byte {
	number := fmt.Appendf(nil, "%0*d", len(idMark), n.sent)
	for _, at := range n.places {
		copy(n.body[at:], number)
	}
	n.sent++
	return n.body
}
