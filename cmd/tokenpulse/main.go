// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command tokenpulse sends synthetic or recorded streams to a token_stream receiver,
// and shows the resulting latencies.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/play"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A terminal and a script may each send a signal, so repeated signals are ignored
	// during the grace period. After it, Ctrl-C ends the process.
	context.AfterFunc(ctx, func() { time.AfterFunc(play.GracePeriod, stop) })
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tokenpulse:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "tokenpulse",
		Short:         "Send token streams to a token_stream receiver and watch their latencies",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newGenerateCommand(), newReplayCommand(), newWatchCommand(), newSLOsCommand())
	return command
}
