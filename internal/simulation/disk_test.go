// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"maps"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// disk is what survives the end of a process. It is a stand-in for file_storage: a batch is
// applied as a whole or not at all, and a full disk refuses batches that write.
type disk struct {
	mu    sync.Mutex
	files map[string]map[string][]byte // by client
	state diskState
}

func (d *disk) set(state diskState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
}

type diskState int

const (
	diskFine diskState = iota
	diskFull
	diskStuck
)

func (s diskState) String() string { return [...]string{"fine", "full", "stuck"}[s] }

var errDiskFull = errors.New("no space left on device")

// diskOf is the disk as one process sees it. It ends with the process.
type diskOf struct {
	component.StartFunc
	component.ShutdownFunc
	process *process
	disk    *disk
}

func (d *diskOf) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	return &diskClient{process: d.process, disk: d.disk, file: kind.String() + "/" + id.String() + "/" + name}, nil
}

type diskClient struct {
	process *process
	disk    *disk
	file    string
}

func (c *diskClient) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if c.process.isDead() {
		return errDead
	}
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	writes := false
	for _, o := range operations {
		writes = writes || o.Type != storage.Get
	}
	switch {
	case !writes:
	case c.disk.state == diskFull:
		return errDiskFull
	case c.disk.state == diskStuck:
		c.disk.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-c.process.dead:
		}
		c.disk.mu.Lock()
		return errDiskFull
	}
	file := maps.Clone(c.disk.files[c.file])
	if file == nil {
		file = map[string][]byte{}
	}
	for _, o := range operations {
		switch o.Type {
		case storage.Get:
			o.Value = file[o.Key]
		case storage.Set:
			file[o.Key] = append([]byte(nil), o.Value...)
		case storage.Delete:
			delete(file, o.Key)
		}
	}
	c.disk.files[c.file] = file
	if writes {
		c.process.world.saved(c.file)
	}
	return nil
}

func (c *diskClient) Get(ctx context.Context, key string) ([]byte, error) {
	o := storage.GetOperation(key)
	err := c.Batch(ctx, o)
	return o.Value, err
}

func (c *diskClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *diskClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

func (*diskClient) Close(context.Context) error { return nil }
