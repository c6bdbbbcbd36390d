// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/watch"
)

const refreshInterval = 2 * time.Second

type watcher struct {
	url    string
	window watch.Window
	once   bool
	client *http.Client
	failed int // scrapes
	lines  int // of the table on the terminal
}

func newWatchCommand() *cobra.Command {
	w := &watcher{client: &http.Client{Timeout: 10 * time.Second}}
	command := &cobra.Command{
		Use:   "watch",
		Short: "Show p50, p95 and p99 of TTFT, ITL and TPOT per model, from the token_sli exporter",
		Example: `  tokenpulse watch
  tokenpulse watch --metrics http://collector:9464/metrics --window 5m`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return w.run(command.Context(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&w.url, "metrics", "http://localhost:9464/metrics", "`URL` of the exporter's metrics")
	flags.DurationVar(&w.window.Length, "window", time.Minute, "window of all columns, from 10s to 24h")
	flags.BoolVar(&w.once, "once", false, "show the table once, since the Collector started; fail if the metrics cannot be read")
	return command
}

// Limits of --window.
const minWindow, maxWindow = 10 * time.Second, 24 * time.Hour

func (w *watcher) run(ctx context.Context, out io.Writer) error {
	defer w.client.CloseIdleConnections()
	if w.window.Length < minWindow || w.window.Length > maxWindow {
		return usagef("--window is %s; give a duration from %s to %s", w.window.Length, minWindow, maxWindow)
	}
	if w.once {
		totals, err := watch.Scrape(ctx, w.client, w.url)
		if err != nil {
			return err
		}
		return watch.Write(out, totals.Rows())
	}
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		w.show(ctx, out)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if w.failed > 0 {
				fmt.Fprintf(out, "failed scrapes: %d\n", w.failed)
			}
			return nil
		}
	}
}

// show writes the table. After an error, which a reload of the Collector causes, too,
// the table has the scrapes before it.
func (w *watcher) show(ctx context.Context, out io.Writer) {
	totals, err := watch.Scrape(ctx, w.client, w.url)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	if err == nil {
		w.window.Add(now, totals)
	} else {
		w.failed++
	}
	rows, covers := w.window.Rows()
	var page bytes.Buffer
	fmt.Fprintf(&page, "%s  last %s  %s", w.url, covers.Round(time.Second), now.Format(time.TimeOnly))
	if w.failed > 0 {
		fmt.Fprintf(&page, "  failed scrapes: %d", w.failed)
	}
	fmt.Fprintln(&page)
	if err != nil {
		fmt.Fprintf(&page, "waiting for metrics: %v\n", err)
	}
	if err == nil || len(rows) > 0 {
		if err := watch.Write(&page, rows); err != nil { // cannot happen: the page is a buffer
			panic(err)
		}
	}
	if isTerminal(out) {
		w.replace(out, page.Bytes())
	} else {
		_, _ = out.Write(page.Bytes())
	}
}

// replace writes the page over the previous one. Lines above stay.
func (w *watcher) replace(out io.Writer, page []byte) {
	const (
		upAndClear  = "\x1b[%dA\x1b[J"
		withoutWrap = "\x1b[?7l%s\x1b[?7h" // a wrapped line would take two rows
	)
	if w.lines > 0 {
		fmt.Fprintf(out, upAndClear, w.lines)
	}
	fmt.Fprintf(out, withoutWrap, page)
	w.lines = bytes.Count(page, []byte("\n"))
}
