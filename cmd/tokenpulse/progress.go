// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows the bytes that were read of files, and the time that is left.
type progress struct {
	read atomic.Int64
	bar  *progressbar.ProgressBar // nil unless the output is a terminal
}

// newProgress returns a progress bar of so many bytes, or a spinner if size is -1.
func newProgress(out io.Writer, size int64) *progress {
	p := &progress{}
	if isTerminal(out) {
		p.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("reading"),
			progressbar.OptionShowBytes(true), progressbar.OptionShowElapsedTimeOnFinish(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	}
	return p
}

// bytes returns the counter of the bytes that were read.
func (p *progress) bytes() *atomic.Int64 { return &p.read }

// show draws the bar, at most every 0.1 s.
func (p *progress) show() {
	if p.bar != nil {
		_ = p.bar.Set64(p.read.Load()) // an error of the terminal is no error of the command
	}
}

// clear removes the bar, so that text can follow.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
