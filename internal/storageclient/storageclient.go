// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package storageclient opens the storage extension that a component names in its
// configuration.
package storageclient

import (
	"context"
	"fmt"

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
	client, err := backend.GetClient(ctx, owner.Kind, owner.ID, owner.Name)
	if err != nil {
		return nil, fmt.Errorf("`storage` %q cannot be opened: %w (timeout: another process uses it; invalid database: the file is damaged, so move it away and start again)", extension, err)
	}
	return client, nil
}
