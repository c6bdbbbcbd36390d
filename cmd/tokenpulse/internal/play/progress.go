// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
)

// ShowProgress writes the progress of a Player until ctx is done, and the final state
// then. A terminal gets one line that is rewritten every 250 ms, any other output a line
// every 5 s.
func ShowProgress(ctx context.Context, out io.Writer, terminal bool, stats *send.Stats) {
	const clearLine = "\r\x1b[K"
	before, after, every := "", "\n", 5*time.Second
	if terminal {
		before, after, every = clearLine, "", 250*time.Millisecond
	}
	began := time.Now()
	write := func() { fmt.Fprint(out, before, progress(stats, time.Since(began)), after) }
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			write()
		case <-ctx.Done():
			write()
			if terminal {
				fmt.Fprintln(out)
			}
			return
		}
	}
}

// progress describes what was sent.
func progress(stats *send.Stats, elapsed time.Duration) string {
	tokens := stats.Tokens.Load()
	rate := float64(tokens) / max(elapsed.Seconds(), 1e-3)
	line := fmt.Sprintf("%6s  %d requests  %d tokens  %.0f tokens/s  %d rejected",
		elapsed.Round(time.Second), stats.Requests.Load(), tokens, rate, stats.Rejected.Load())
	if refused := stats.Refused.Load(); refused > 0 {
		line += fmt.Sprintf("  %d refused", refused)
	}
	if retries := stats.Retries.Load(); retries > 0 {
		line += fmt.Sprintf("  %d retries", retries)
	}
	return line
}
