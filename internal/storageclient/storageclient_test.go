// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package storageclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// stuck is a storage that does not open, like one with a damaged file.
type stuck struct {
	component.StartFunc
	component.ShutdownFunc
	end chan struct{}
}

func (s *stuck) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	<-s.end
	return storagetest.NewMemory(), nil
}

// limitAnswers shortens the deadline for a test.
func limitAnswers(t *testing.T) {
	t.Helper()
	before := answerTime
	answerTime = 20 * time.Millisecond
	t.Cleanup(func() { answerTime = before })
}

func TestOpen_FailsIfTheStorageDoesNotAnswer(t *testing.T) {
	limitAnswers(t)
	end := make(chan struct{})
	defer close(end)
	host := storagetest.Host{storagetest.FileStorage: &stuck{end: end}}
	_, err := Open(t.Context(), host, storagetest.FileStorage, Owner{})
	require.ErrorIs(t, err, ErrNoAnswer)
	require.ErrorContains(t, err, "`storage` \"file_storage\" cannot be opened: after 20ms there is no answer; "+
		"its file is probably damaged, so move it away and start again")
}

func TestRead_FailsIfTheStorageDoesNotAnswer(t *testing.T) {
	memory := storagetest.NewMemory()
	end := make(chan struct{})
	defer close(end)
	client, err := Open(t.Context(), storagetest.Host{storagetest.FileStorage: memory}, storagetest.FileStorage, Owner{})
	require.NoError(t, err)
	require.NoError(t, client.Batch(t.Context(), storage.SetOperation("a", []byte("b"))))
	get := storage.GetOperation("a")
	require.NoError(t, client.Batch(t.Context(), get))
	require.Equal(t, "b", string(get.Value))
	value, err := client.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "b", string(value))
	limitAnswers(t)
	memory.Fail = func(*storage.Operation) error { <-end; return nil }
	require.ErrorIs(t, client.Batch(t.Context(), storage.GetOperation("a")), ErrNoAnswer)
	_, err = client.Get(t.Context(), "a")
	require.ErrorIs(t, err, ErrNoAnswer)
}
