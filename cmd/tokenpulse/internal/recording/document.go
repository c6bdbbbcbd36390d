// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// errTooLarge is the error of a value that exceeds the limit of its document.
var errTooLarge = errors.New("too large")

// document reads a JSON document value by value, so that memory holds one value and not the document.
type document struct {
	decoder *json.Decoder
	source  *limited
}

// newDocument returns a document whose values between two calls of renew have at most limit bytes.
func newDocument(r io.Reader, limit int64) *document {
	source := &limited{source: r, limit: limit, left: limit}
	return &document{json.NewDecoder(&pythonJSON{source: source}), source}
}

// renew permits as many bytes as at the beginning.
func (d *document) renew() { d.source.left = d.source.limit }

// limited ends with an error after a number of bytes.
type limited struct {
	source      io.Reader
	limit, left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: more than %d MiB", errTooLarge, l.limit>>20)
	}
	n, err := l.source.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// value decodes the next value into dst.
func (d *document) value(dst any) error { return d.located(d.decoder.Decode(dst)) }

// skip reads the next value and drops it.
func (d *document) skip() error {
	var v skipped
	return d.value(&v)
}

type skipped struct{}

func (skipped) UnmarshalJSON([]byte) error { return nil }

// object reads an object and calls field with each key; field has to read the value. It does nothing for null.
func (d *document) object(field func(key string) error) error {
	opening, err := d.token()
	if err != nil || opening == nil {
		return err
	}
	if opening != json.Delim('{') {
		return d.located(errors.New("not an object"))
	}
	for d.decoder.More() {
		key, err := d.token()
		if err != nil {
			return err
		}
		if err := field(key.(string)); err != nil { //nolint:forcetypeassert // the decoder accepts no other key
			return err
		}
	}
	_, err = d.token()
	return err
}

// list reads a list and calls element with the index of each element, which it has to read. It does nothing for null.
func (d *document) list(element func(i int) error) error {
	opening, err := d.token()
	if err != nil || opening == nil {
		return err
	}
	if opening != json.Delim('[') {
		return d.located(errors.New("not a list"))
	}
	for i := 0; d.decoder.More(); i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	_, err = d.token()
	return err
}

func (d *document) token() (json.Token, error) {
	token, err := d.decoder.Token()
	return token, d.located(err)
}

// located adds the position to an error of syntax. Errors of values have their field already.
func (d *document) located(err error) error {
	switch {
	case err == nil, errors.Is(err, errTooLarge), isValueError(err):
		return err
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("byte %d: %w", d.decoder.InputOffset(), err)
}

// isValueError reports whether an error concerns a value that was read to its end, so that reading can go on after it.
func isValueError(err error) bool {
	var wrongType *json.UnmarshalTypeError
	var wrongValue *valueError
	return errors.As(err, &wrongType) || errors.As(err, &wrongValue)
}
