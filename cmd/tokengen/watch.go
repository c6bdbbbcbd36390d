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

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/watch"
)

const refreshInterval = 2 * time.Second

type watcher struct {
	url    string
	window string
	once   bool
	client *http.Client
	lines  int // of the table on the terminal
}

func newWatchCommand() *cobra.Command {
	w := &watcher{client: &http.Client{Timeout: 10 * time.Second}}
	command := &cobra.Command{
		Use:   "watch",
		Short: "Show p50, p95 and p99 of TTFT, ITL and TPOT per model, from the token_sli exporter",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return w.run(command.Context(), command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&w.url, "metrics", "http://localhost:9464/metrics", "`URL` of the exporter's metrics")
	flags.StringVar(&w.window, "window", "5m", "window of the percentiles; one of the exporter's windows")
	flags.BoolVar(&w.once, "once", false, "show the table once; fail if the metrics cannot be read")
	return command
}

func (w *watcher) run(ctx context.Context, out io.Writer) error {
	defer w.client.CloseIdleConnections()
	if w.once {
		rows, err := watch.Scrape(ctx, w.client, w.url, w.window)
		if err != nil {
			return err
		}
		return watch.Write(out, rows)
	}
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		w.show(ctx, out)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// show writes the table, or the error: the Collector may still be starting.
func (w *watcher) show(ctx context.Context, out io.Writer) {
	var page bytes.Buffer
	fmt.Fprintf(&page, "%s  last %s  %s\n", w.url, w.window, time.Now().Format(time.TimeOnly))
	rows, err := watch.Scrape(ctx, w.client, w.url, w.window)
	if err != nil {
		fmt.Fprintf(&page, "waiting for metrics: %v\n", err)
	} else if err := watch.Write(&page, rows); err != nil { // cannot happen: the page is a buffer
		panic(err)
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
