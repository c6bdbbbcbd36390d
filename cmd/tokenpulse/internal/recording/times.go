// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"
)

// valueError is the error of a value that was read, but is none of its kind.
type valueError struct{ message string }

func (e *valueError) Error() string { return e.message }

func wrongValue(format string, args ...any) error { return &valueError{fmt.Sprintf(format, args...)} }

// seconds is a number of seconds in JSON as whole nanoseconds. Decimal digits are read as they are: a Unix time in a
// float64 is only precise to a quarter of a microsecond.
type seconds int64

// UnmarshalJSON implements json.Unmarshaler. It ignores null.
func (s *seconds) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	ns, ok := parseSeconds(b)
	if !ok {
		return wrongValue("%.40s is no number of seconds from -292 years to 292", b)
	}
	*s = seconds(ns)
	return nil
}

// parseSeconds rounds to the nearest nanosecond.
func parseSeconds(b []byte) (ns int64, ok bool) {
	if bytes.ContainsAny(b, "eE") || len(b) > 40 {
		f, err := strconv.ParseFloat(string(b), 64)
		f = math.Round(f * float64(time.Second))
		return int64(f), err == nil && math.Abs(f) < math.MaxInt64
	}
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	whole, fraction, _ := bytes.Cut(digits, []byte("."))
	var padded [10]byte // one digit more than nanoseconds have, to round
	for i := range padded {
		padded[i] = '0'
	}
	copy(padded[:], fraction)
	w, err := strconv.ParseInt(string(whole), 10, 64)
	f, err2 := strconv.ParseInt(string(padded[:]), 10, 64)
	if err != nil || err2 != nil || w >= math.MaxInt64/int64(time.Second) {
		return 0, false
	}
	ns = w*int64(time.Second) + (f+5)/10
	if negative {
		ns = -ns
	}
	return ns, true
}

// latency returns a duration if it is plausible for one of a request.
func (s seconds) latency(field string) (int64, error) {
	const day = seconds(24 * time.Hour)
	if s < 0 || s > day {
		return 0, wrongValue("%s is %s; supported are 0 to 24 hours", field, time.Duration(s))
	}
	return int64(s), nil
}

// count is a number of tokens in JSON. Tools write some as fractions, such as 12.0.
type count int64

// UnmarshalJSON implements json.Unmarshaler. It ignores null.
func (c *count) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f > math.MaxInt32 {
		return wrongValue("%.40s is no number of tokens", b)
	}
	*c = count(f)
	return nil
}

// pointer returns the count as stream.Usage has it, or nil.
func (c *count) pointer() *uint64 {
	if c == nil {
		return nil
	}
	return new(uint64(*c))
}

// head is the beginning of a JSON text, or of an object in place of it, with its quotation marks unescaped.
type head string

// headBytes is the length of a head.
const headBytes = 2 << 10

// UnmarshalJSON implements json.Unmarshaler.
func (h *head) UnmarshalJSON(b []byte) error {
	*h = head(bytes.ReplaceAll(b[:min(len(b), headBytes)], []byte(`\"`), []byte(`"`)))
	return nil
}

// tail is the end of a JSON text.
type tail string

// UnmarshalJSON implements json.Unmarshaler.
func (t *tail) UnmarshalJSON(b []byte) error {
	if string(b) != "null" {
		*t = tail(bytes.TrimSuffix(b[max(len(b)-headBytes, 0):], []byte(`"`)))
	}
	return nil
}
