// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// openStorage restores the open streams, if a storage is configured.
func (r *tokenStreamReceiver) openStorage(ctx context.Context, host component.Host) error {
	id := r.cfg.StorageID
	if id == nil {
		return nil
	}
	client, err := storageclient.Open(ctx, host, *id, storageclient.Owner{Kind: component.KindReceiver, ID: r.settings.ID})
	if err != nil {
		return err
	}
	began := time.Now()
	restored, err := r.ingester.Store.OpenJournal(ctx, client, r.storageFailed())
	switch {
	case errors.Is(err, storageclient.ErrNoAnswer): // and there would be none to Close
		return fmt.Errorf("`storage` %q cannot be read: %w", id, err)
	case err != nil:
		return errors.Join(fmt.Errorf("`storage` %q cannot be read: %w (move its file away and start again)", id, err), client.Close(ctx))
	}
	r.telemetry.ReceiverTokenStreamStreamsRestored.Add(ctx, int64(restored.Streams))
	r.telemetry.ReceiverTokenStreamEventsRestored.Add(ctx, restored.Events)
	r.telemetry.ReceiverTokenStreamStreamsLost.Add(ctx, int64(restored.Damaged), diagnostics.Label("cause", "damaged"))
	r.telemetry.ReceiverTokenStreamStreamsLost.Add(ctx, int64(restored.Full), diagnostics.Label("cause", "limit"))
	log, message := r.settings.Logger.Info, "restored open streams from the storage"
	if restored.Err != nil || restored.Damaged > 0 || restored.Full > 0 {
		log = r.settings.Logger.Error
		message += ", but lost some; raise the limits for those lost_at_limit, and check the extension and its disk for lost_damaged"
		r.telemetry.ReceiverTokenStreamStorageFailures.Add(ctx, int64(restored.Failures), diagnostics.Label("operation", "read"))
	}
	log(message, zap.Stringer("storage", id), zap.Int("streams", restored.Streams), zap.Int("lost_damaged", restored.Damaged),
		zap.Int("lost_at_limit", restored.Full), zap.Duration("took", time.Since(began)), zap.NamedError("damage", restored.Err))
	return nil
}

// storageLogInterval is the minimum time between two logs of failed writes.
const storageLogInterval = 10 * time.Second

// storageFailed returns a function that counts failed writes.
func (r *tokenStreamReceiver) storageFailed() func(error) {
	var logged time.Time
	return func(err error) {
		r.telemetry.ReceiverTokenStreamStorageFailures.Add(context.Background(), 1, diagnostics.Label("operation", "write"))
		if time.Since(logged) < storageLogInterval {
			return
		}
		logged = time.Now()
		remedy := "check the extension and its disk"
		if errors.Is(err, storage.ErrStorageFull) {
			remedy = "raise the maximum size of the extension, or lower max_memory_mib"
		}
		r.settings.Logger.Error("failed to store open streams, so requests that change them are refused; "+remedy,
			zap.Stringer("storage", r.cfg.StorageID), zap.Error(err))
	}
}

// storageTimeout limits how long a shutdown waits for the storage.
const storageTimeout = 5 * time.Second

// closeStorage waits for the last write. Open streams stay in the storage.
func (r *tokenStreamReceiver) closeStorage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	if err := r.ingester.Store.CloseJournal(ctx); err != nil {
		r.telemetry.ReceiverTokenStreamStorageFailures.Add(ctx, 1, diagnostics.Label("operation", "write"))
		r.settings.Logger.Error("failed to close the storage of open streams, which may lack the last changes; check the extension and its disk",
			zap.Stringer("storage", r.cfg.StorageID), zap.Error(err))
	}
}
