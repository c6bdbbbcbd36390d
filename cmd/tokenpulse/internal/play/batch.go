// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// Events per batch. Live batches are small, so that at full speed the streams of a
// recording span several batches.
const (
	maxLiveEvents  = 500
	maxWholeEvents = 20_000
)

// batch collects the parts of one Send.
type batch struct {
	sender    send.Sender
	stats     *send.Stats
	maxEvents int
	parts     []stream.Part
	events    int
}

// add adds a part, and sends the batch if it is full.
func (b *batch) add(ctx context.Context, p stream.Part) error {
	b.parts = append(b.parts, p)
	b.events += p.Events()
	if b.events < b.maxEvents {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.parts) == 0 {
		return nil
	}
	if err := b.sender.Send(ctx, b.parts); err != nil {
		return err
	}
	for _, part := range b.parts {
		b.stats.Tokens.Add(int64(part.Tokens()))
		if part.End {
			b.stats.Requests.Add(1)
		}
	}
	b.parts, b.events = b.parts[:0], 0
	return nil
}
