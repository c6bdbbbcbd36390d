// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanfile

import (
	"bufio"
	"errors"
	"io"
)

// lines reads lines of limited length.
type lines struct {
	in     *bufio.Reader
	limit  int // bytes of a line
	number int // of the line that was read last, from 1
	long   []byte
}

// next returns a line, which is valid until the next call. It skips a line above the limit
// and returns errTooLarge. At the end, it returns io.EOF.
func (l *lines) next() ([]byte, error) {
	l.number++
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.join(line)
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = nil
	}
	return line, err
}

// join reads the rest of a line that is longer than the buffer.
func (l *lines) join(part []byte) ([]byte, error) {
	l.long = append(l.long[:0], part...)
	for size := len(part); ; {
		part, err := l.in.ReadSlice('\n')
		if size += len(part); size <= l.limit {
			l.long = append(l.long, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case size > l.limit && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLarge
		default:
			return l.long, err
		}
	}
}
