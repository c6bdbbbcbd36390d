// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
)

// maxLine bounds a line in bytes. One with all blocks of maxInput takes half of it.
const maxLine = 1 << 20

// Write writes the trace, a request per line.
func (t *Trace) Write(out io.Writer) error {
	buffered, line, id := bufio.NewWriterSize(out, 64<<10), []byte{}, int64(0)
	for i := range t.Requests {
		r := &t.Requests[i]
		line = append(line[:0], `{"timestamp": `...)
		line = strconv.AppendInt(line, r.Timestamp, 10)
		line = append(line, `, "input_length": `...)
		line = strconv.AppendUint(line, uint64(r.Input), 10)
		line = append(line, `, "output_length": `...)
		line = strconv.AppendUint(line, uint64(r.Output), 10)
		line = append(line, `, "hash_ids": [`...)
		for block := range (r.Input + blockSize - 1) / blockSize {
			if block > 0 {
				line = append(line, ", "...)
			}
			line = strconv.AppendInt(line, id, 10)
			id++
		}
		line = append(line, "]}\n"...)
		if _, err := buffered.Write(line); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Detect reports whether a file is a trace, by its beginning.
func Detect(prefix []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimSpace(prefix), []byte("\n"))
	decoder := json.NewDecoder(bytes.NewReader(first))
	if opening, _ := decoder.Token(); opening != json.Delim('{') {
		return false
	}
	keys := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return false
		}
		keys[name] = true
		if keys["timestamp"] && keys["input_length"] {
			return true
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return false
		}
	}
	return false
}

// Read reads a trace, and sorts its requests by their arrival. It does not read hash IDs. Errors name the line.
func Read(in io.Reader) (*Trace, error) { return read(in, arrivals.MaxRequests) }

func read(in io.Reader, limit int) (*Trace, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	t, number := &Trace{}, 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if len(t.Requests) == limit {
			return nil, fmt.Errorf("line %d: the trace has more than %d requests; split it", number, limit)
		}
		r, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		t.Requests = append(t.Requests, r)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d MiB; write one request per line", number+1, maxLine>>20)
	} else if err != nil {
		return nil, err
	}
	if len(t.Requests) == 0 {
		return nil, errors.New("the trace is empty; expected a request per line")
	}
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	for i, first := 0, t.Requests[0].Timestamp; i < len(t.Requests); i++ {
		t.Requests[i].Timestamp -= first
	}
	return t, nil
}

// parse reads a line. AIPerf's traces may have fractions of milliseconds, which it rounds.
func parse(line []byte) (Request, error) {
	var read struct {
		Timestamp *float64 `json:"timestamp"`
		Input     *float64 `json:"input_length"`
		Output    *float64 `json:"output_length"`
	}
	if err := json.Unmarshal(line, &read); err != nil {
		return Request{}, fmt.Errorf("not a request of a trace: %w", err)
	}
	const years = float64(10 * 365 * 24 * time.Hour / time.Millisecond)
	for _, field := range [...]struct {
		key           string
		value         *float64
		least, most   float64
		unit, missing string
	}{
		{"timestamp", read.Timestamp, 0, years, "milliseconds", "a delay after another request cannot be replayed"},
		{"input_length", read.Input, 1, maxInput, "tokens", "text cannot be replayed"},
		{"output_length", read.Output, 1, maxOutput, "tokens", "give the tokens of the answer"},
	} {
		switch {
		case field.value == nil:
			return Request{}, fmt.Errorf("the request has no %s; %s", field.key, field.missing)
		case !(field.least <= *field.value && *field.value <= field.most):
			return Request{}, fmt.Errorf("%s is %g; supported are %g to %.0f %s", field.key, *field.value, field.least, field.most, field.unit)
		}
	}
	return Request{Timestamp: int64(math.Round(*read.Timestamp)), Input: uint32(*read.Input), Output: uint32(*read.Output)}, nil
}
