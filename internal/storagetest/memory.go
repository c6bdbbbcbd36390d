// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Memory is a storage extension with one client. It can fail, block or end at any operation,
// which a real storage cannot. Its batches are not atomic, unlike those of file_storage.
type Memory struct {
	component.StartFunc
	component.ShutdownFunc

	mu sync.Mutex
	// Values are what is stored.
	Values map[string][]byte
	// Batches counts the calls of Batch.
	Batches int
	// Fail is called before each operation, which it fails by an error.
	Fail func(*storage.Operation) error
}

var _ storage.Extension = (*Memory)(nil)

// NewMemory returns an empty storage.
func NewMemory() *Memory { return &Memory{Values: map[string][]byte{}} }

// GetClient returns the storage itself.
func (m *Memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}

// Get reads a value.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	err := m.Batch(ctx, get)
	return get.Value, err
}

// Set writes a value.
func (m *Memory) Set(ctx context.Context, key string, value []byte) error {
	return m.Batch(ctx, storage.SetOperation(key, value))
}

// Delete deletes a value.
func (m *Memory) Delete(ctx context.Context, key string) error {
	return m.Batch(ctx, storage.DeleteOperation(key))
}

// Batch does the operations in order, up to the first that fails.
func (m *Memory) Batch(_ context.Context, operations ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Batches++
	for _, o := range operations {
		if m.Fail != nil {
			if err := m.Fail(o); err != nil {
				return err
			}
		}
		switch o.Type {
		case storage.Get:
			o.Value = slices.Clone(m.Values[o.Key])
		case storage.Set:
			m.Values[o.Key] = slices.Clone(o.Value)
		case storage.Delete:
			delete(m.Values, o.Key)
		}
	}
	return nil
}

// FailWith makes all operations fail from now on, or succeed if err is nil.
func (m *Memory) FailWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Fail = func(*storage.Operation) error { return err }
}

// Stored returns a copy of the values.
func (m *Memory) Stored() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.Values)
}

// Close keeps the values for the next client.
func (*Memory) Close(context.Context) error { return nil }

// Size returns the bytes of all values.
func (m *Memory) Size() (bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, value := range m.Values {
		bytes += len(value)
	}
	return bytes
}
