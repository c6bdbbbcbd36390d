// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"slices"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/tokenpulse/tokenpulse/internal/inflate"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/ingest"
)

// The decoders of the Collector allocate their buffers outside of any limit. For zstd
// that is up to 512 MiB, which a header of ten bytes can ask for.

// openZstd serves small windows from less memory.
var openZstd = inflate.Zstd(256<<10, 1<<20)

// decoders returns decoders for the enabled algorithms that reserve their memory.
func decoders(algorithms []string, store *assembly.Store) []confighttp.ToServerOption {
	var options []confighttp.ToServerOption
	for name, open := range map[string]inflate.Open{
		"gzip": inflate.Gzip, "zlib": inflate.Zlib, "deflate": inflate.Zlib, "zstd": openZstd,
	} {
		if slices.Contains(algorithms, name) {
			options = append(options, confighttp.WithDecoder(name, func(body io.ReadCloser) (io.ReadCloser, error) {
				return &decoder{body: body, open: open, memory: ingest.Reservation{Store: store}}, nil
			}))
		}
	}
	return options
}

// decoder decompresses a body. It starts with the first read, so that errors and
// refusals reach the handler.
type decoder struct {
	body   io.Reader
	open   inflate.Open
	memory ingest.Reservation
	opened io.ReadCloser
	err    error // of open
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (int, error) {
	if d.opened == nil && d.err == nil {
		d.opened, d.err = d.open(d.body, d.memory.Add)
		if errors.Is(d.err, io.EOF) { // which would be the end of a whole body
			d.err = io.ErrUnexpectedEOF
		}
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.opened.Read(p)
	if err != nil {
		d.err = err
		_ = d.Close() // the pipeline may take much longer than the body
	}
	return n, err
}

// Close implements io.Closer. It leaves closing the body to the server.
func (d *decoder) Close() error {
	defer d.memory.Free()
	if d.opened == nil {
		return nil
	}
	opened := d.opened
	d.opened = nil
	if d.err == nil {
		d.err = errDecoderClosed
	}
	return opened.Close()
}

var errDecoderClosed = errors.New("the decoder is closed")
