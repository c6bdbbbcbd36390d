// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"time"
)

// serveFloor answers HTTP requests after reading their bodies: the least that a server in
// Go does for the bytes of a request.
func serveFloor(address string) error {
	server := http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	return server.ListenAndServe()
}
