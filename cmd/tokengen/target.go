package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/play"
	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/send"
)

// target is where streams go: the flags that generate and replay share.
type target struct {
	transport string
	endpoint  string
	headers   map[string]string
}

func (t *target) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.transport, "transport", string(send.NDJSON), fmt.Sprintf("wire format: one of %v; ndjson and grpc-stream send events as they happen, the others whole streams", send.Transports))
	flags.StringVar(&t.endpoint, "endpoint", "", "host:port of the receiver, or a URL for TLS (https://host:port); default localhost:4319, for gRPC localhost:4320")
	flags.StringToStringVar(&t.headers, "header", nil, "header (for gRPC: metadata) to send along, as name=value; repeatable")
}

// play sends what the source has, with a progress line, and fails when anything
// was not taken.
func (t *target) play(command *cobra.Command, source play.Source, realTime bool) error {
	tally := &send.Tally{}
	transport := send.Transport(t.transport)
	sender, err := send.New(send.Config{Transport: transport, Endpoint: t.endpoint, Headers: t.headers, Tally: tally})
	if err != nil {
		return err
	}
	player := &play.Player{Sender: sender, Tally: tally, Live: transport.Live(), RealTime: realTime}
	err = withProgress(command.Context(), command.ErrOrStderr(), tally, func() error {
		return player.Play(command.Context(), source)
	})
	if err != nil {
		return fmt.Errorf("sending failed: %w", err)
	}
	if rejected := tally.Rejected.Load(); rejected > 0 {
		return fmt.Errorf("the receiver rejected %d items, the last because: %s", rejected, tally.RejectedBecause())
	}
	return nil
}

// withProgress shows progress while do runs.
func withProgress(ctx context.Context, out io.Writer, tally *send.Tally, do func() error) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	progress := &play.Progress{Out: out, Terminal: isTerminal(out), Tally: tally}
	var shown sync.WaitGroup
	shown.Go(func() { progress.Show(ctx) })
	err := do()
	stop()
	shown.Wait()
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
