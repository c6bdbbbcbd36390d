// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package assembly assembles token streams from events that arrive in any number of
// requests and in any order.
//
// Each request is decoded into a Batch of its own: checking events and packing chunks
// takes no lock. The batch is then applied to the Store in one transaction:
//
//	tx, err := store.Begin(ctx, batch) // claims the streams, checks the limits
//	deliver(tx.Finished)               // outside of any lock
//	err = tx.Commit()                  // or tx.Rollback(), which changes nothing
//
// A claim locks one stream. Other transactions that need the stream wait until the
// transaction that holds the claim ends.
//
// With OpenJournal, a commit first stores the changes of open streams, so that they survive a
// crash.
package assembly

// Limits bound what a Store and its batches hold.
type Limits struct {
	// MaxStreams bounds the number of open streams.
	MaxStreams int
	// MaxStreamsPerClient bounds the open streams of one client while less than half of
	// MaxStreams is free. 0 means no limit.
	MaxStreamsPerClient int
	// MaxChunksPerStream bounds the chunks of one stream. Further chunks are dropped
	// and counted.
	MaxChunksPerStream int
	// MaxStreamBytes bounds the encoded size of a stream's ID, attributes and resource.
	MaxStreamBytes int
	// MaxMemory bounds the bytes that all open streams and requests in progress hold
	// together.
	MaxMemory int64
}
