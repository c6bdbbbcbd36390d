// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/play"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
)

// target holds the flags that generate and replay share: where and how to send.
type target struct {
	transport string
	endpoint  string
	headers   map[string]string
}

func (t *target) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.transport, "transport", string(send.NDJSON), "wire format: ndjson or grpc-stream (each event when it happens), json, protobuf or grpc (whole streams when they end)")
	flags.StringVar(&t.endpoint, "endpoint", "", "receiver as host:port, or https://host:port for TLS (default localhost:4319, for gRPC localhost:4320)")
	flags.StringToStringVar(&t.headers, "header", nil, "header (gRPC: metadata) of each request, as `name=value`; repeatable")
}

// play sends the streams of the source and shows the progress. It returns an error if
// the receiver rejected or refused anything.
func (t *target) play(command *cobra.Command, source play.Source, realTime bool) error {
	stats := &send.Stats{}
	transport := send.Transport(t.transport)
	sender, err := send.New(send.Config{Transport: transport, Endpoint: t.endpoint, Headers: t.headers, Stats: stats})
	if err != nil {
		return usageError{err}
	}
	player := &play.Player{Sender: sender, Stats: stats, Live: transport.Live(), RealTime: realTime}
	err = withProgress(command.Context(), command.ErrOrStderr(), stats, func() error {
		return player.Play(command.Context(), source)
	})
	if err != nil {
		return fmt.Errorf("send streams: %w", err)
	}
	if rejected := stats.Rejected.Load(); rejected > 0 {
		return fmt.Errorf("the receiver rejected %d items; last message: %s", rejected, stats.LastRejection())
	}
	if refused := stats.Refused.Load(); refused > 0 {
		return fmt.Errorf("the receiver refused %d events; last error: %s", refused, stats.LastRefusal())
	}
	return nil
}

// withProgress calls do and shows the progress meanwhile.
func withProgress(ctx context.Context, out io.Writer, stats *send.Stats, do func() error) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() { play.ShowProgress(ctx, out, isTerminal(out), stats) })
	err := do()
	stop()
	group.Wait()
	return err
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
