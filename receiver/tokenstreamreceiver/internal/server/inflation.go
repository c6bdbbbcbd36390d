// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// A live body has no size limit, so what it decompresses to is limited by what arrives.
// NDJSON of token events compresses to a tenth or a thirtieth, and to an eightieth if
// each line repeats much text.
const (
	maxInflation  = 100
	freeInflation = 1 << 20 // bytes that do not count
)

var errInflated = &ingest.Refusal{HTTP: http.StatusRequestEntityTooLarge, GRPC: codes.ResourceExhausted, Message: fmt.Sprintf(
	"the body decompresses to more than %d times its compressed size, so the rest was not read; send it uncompressed", maxInflation)}

// inflatedBody is a body that ends with errInflated at the limit.
type inflatedBody struct {
	io.Reader
	compressed   *timedBody
	decompressed int64 // bytes that were read
}

// limitInflation returns the body of a request, limited if it may be compressed.
func limitInflation(httpReq *http.Request) io.Reader {
	compressed, ok := httpReq.Context().Value(bodyKey{}).(*timedBody)
	if !ok {
		return httpReq.Body
	}
	return &inflatedBody{Reader: httpReq.Body, compressed: compressed}
}

// Read implements io.Reader.
func (b *inflatedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.decompressed += int64(n)
	if b.decompressed > freeInflation+maxInflation*b.compressed.received {
		return 0, errInflated
	}
	return n, err
}
