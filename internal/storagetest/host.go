// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package storagetest gives tests a Collector with a real file_storage, and a storage in memory that
// fails on request.
package storagetest

import (
	"context"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
)

// FileStorage is the ID of the storage.
var FileStorage = component.MustNewID("file_storage")

// Host is a Collector with the given extensions.
type Host map[component.ID]component.Component

// GetExtensions returns the extensions.
func (h Host) GetExtensions() map[component.ID]component.Component { return h }

// NewHost returns a Collector with a file_storage in a temporary folder.
func NewHost(t testing.TB) Host {
	t.Helper()
	host, stop := NewHostIn(t, t.TempDir())
	t.Cleanup(stop)
	return host
}

// NewHostIn returns a Collector with a file_storage in a folder, which stop closes.
func NewHostIn(t testing.TB, directory string) (host Host, stop func()) {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = directory
	storage, err := factory.Create(context.Background(), extensiontest.NewNopSettings(FileStorage.Type()), config)
	require.NoError(t, err)
	require.NoError(t, storage.Start(context.Background(), componenttest.NewNopHost()))
	return Host{FileStorage: storage}, func() { require.NoError(t, storage.Shutdown(context.Background())) }
}
