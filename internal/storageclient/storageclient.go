// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package storageclient opens the storage extension that a component names in its configuration, and saves
// values in it, so that they survive a restart of the Collector.
package storageclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Owner identifies the data of one component among those of others.
type Owner struct {
	Kind component.Kind
	ID   component.ID
	// Name separates the stores of one component. It may be empty.
	Name string
}

// Open opens the storage of an owner. Its errors name the key `storage` and the remedy.
func Open(ctx context.Context, host component.Host, extension component.ID, owner Owner) (storage.Client, error) {
	found, ok := host.GetExtensions()[extension]
	if !ok {
		return nil, fmt.Errorf("`storage` is %q, which is not an extension of this Collector; list it under `extensions` and under `service::extensions`", extension)
	}
	backend, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("`storage` is %q, which is not a storage extension; name one, such as file_storage", extension)
	}
	var opened storage.Client
	err := within(openingMemory, func() (err error) {
		opened, err = backend.GetClient(ctx, owner.Kind, owner.ID, owner.Name)
		return err
	})
	switch {
	case errors.Is(err, ErrNoAnswer):
		return nil, fmt.Errorf("`storage` %q cannot be opened: %w", extension, err)
	case err != nil:
		return nil, fmt.Errorf("`storage` %q cannot be opened: %w (timeout: another process uses it; invalid database: the file is damaged, so move it away and start again)", extension, err)
	}
	return client{opened}, nil
}

// ErrNoAnswer is the error of a storage that does not answer.
var ErrNoAnswer = errors.New("no answer; its file is probably damaged, so move it away and start again")

// answerTime limits the time of opening a storage, and of reading from it. The database of file_storage
// lists the pages in use when it opens: for minutes, and in gigabytes, if the length of one is damaged.
var answerTime = 30 * time.Second

// openingMemory limits the memory of opening a storage, in bytes. An intact file of 1 GiB needs a tenth of it.
const openingMemory = 256 << 20

// within returns the result of a step, or ErrNoAnswer if it takes longer than answerTime or more memory
// than a limit. Nothing can end the step then, so the Collector must not start.
func within(memory int64, step func() error) error {
	done := make(chan error, 1)
	held := heapBytes()
	go func() { done <- step() }()
	deadline, check := time.After(answerTime), time.NewTicker(100*time.Millisecond)
	defer check.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-deadline:
			return fmt.Errorf("after %s there is %w", answerTime, ErrNoAnswer)
		case <-check.C:
			if heapBytes()-held > memory {
				return fmt.Errorf("within %d MiB of memory there is %w", memory>>20, ErrNoAnswer)
			}
		}
	}
}

// heapBytes returns the memory of the process on the heap.
func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// client limits the time of reads, which components do when they start.
type client struct{ storage.Client }

// Get implements storage.Client.
func (c client) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	if err := c.Batch(ctx, get); err != nil {
		return nil, err // the storage may still write the value
	}
	return get.Value, nil
}

// Batch implements storage.Client.
func (c client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if slices.ContainsFunc(operations, func(o *storage.Operation) bool { return o.Type != storage.Get }) {
		return c.Client.Batch(ctx, operations...)
	}
	return within(math.MaxInt64, func() error { return c.Client.Batch(ctx, operations...) })
}
