// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command tokenpulse reads spans and results of benchmarks from files: it reports, compares and converts them. It also
// sends synthetic or recorded streams to a token_stream receiver, and shows the resulting latencies.
package main

import (
	"context"
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
	os.Exit(exitCode(os.Stderr, newCommand().ExecuteContext(ctx)))
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "tokenpulse",
		Short: "Report and compare token latencies from files, and send and watch token streams",
		Long: `Report and compare token latencies from files, and send and watch token streams.

The exit code is 0, or 1 if the command failed, or 64 if the command line is wrong.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddGroup(&cobra.Group{ID: reading, Title: "Read files:"}, &cobra.Group{ID: traffic, Title: "Send and watch traffic:"})
	add(command, reading, newReportCommand(), newCompareCommand(), newSlowestCommand(), newTraceCommand(), newCapacityCommand(), newWorkloadCommand(), newSLOsCommand())
	add(command, traffic, newGenerateCommand(), newReplayCommand(), newWatchCommand())
	add(command, "", newManCommand())
	return command
}

// Groups of commands.
const (
	reading = "reading"
	traffic = "traffic"
)

// add adds commands to a group, with the errors that exitCode distinguishes.
func add(parent *cobra.Command, group string, commands ...*cobra.Command) {
	for _, command := range commands {
		run := command.RunE
		command.RunE = func(command *cobra.Command, args []string) error {
			if err := run(command, args); err != nil {
				return failure{err}
			}
			return nil
		}
		command.GroupID = group
		parent.AddCommand(command)
	}
}
