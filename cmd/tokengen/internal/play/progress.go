// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/send"
)

// Progress writes the progress of a Player.
type Progress struct {
	Out io.Writer
	// Terminal rewrites one line every 250 ms. Otherwise a line is added every 5 s.
	Terminal bool
	Stats    *send.Stats

	began time.Time
}

// Show writes the progress until ctx is done, and the final state then.
func (p *Progress) Show(ctx context.Context) {
	p.began = time.Now()
	every := 5 * time.Second
	if p.Terminal {
		every = 250 * time.Millisecond
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.write()
		case <-ctx.Done():
			p.write()
			if p.Terminal {
				fmt.Fprintln(p.Out)
			}
			return
		}
	}
}

func (p *Progress) write() {
	const clearLine = "\r\x1b[K"
	line := p.line(time.Since(p.began))
	if p.Terminal {
		fmt.Fprint(p.Out, clearLine, line)
		return
	}
	fmt.Fprintln(p.Out, line)
}

func (p *Progress) line(elapsed time.Duration) string {
	tokens := p.Stats.Tokens.Load()
	rate := float64(tokens) / max(elapsed.Seconds(), 1e-3)
	line := fmt.Sprintf("%6s  %d requests  %d tokens  %.0f tokens/s  %d rejected",
		elapsed.Round(time.Second), p.Stats.Requests.Load(), tokens, rate, p.Stats.Rejected.Load())
	if retries := p.Stats.Retries.Load(); retries > 0 {
		line += fmt.Sprintf("  %d retries", retries)
	}
	return line
}
