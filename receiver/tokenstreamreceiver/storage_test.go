// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// stored configures the storage of a host.
func stored(c *Config) { c.StorageID = &storagetest.FileStorage }

// startOn starts a receiver with a storage.
func startOn(t *testing.T, host storagetest.Host) *bench {
	t.Helper()
	b := prepare(t, stored)
	require.NoError(t, b.Start(t.Context(), host))
	return b
}

// inMemory returns a host whose storage fails on request.
func inMemory() (storagetest.Host, *storagetest.Memory) {
	client := storagetest.NewMemory()
	return storagetest.Host{storagetest.FileStorage: client}, client
}

func TestStorage_OpenStreamsSurviveARestart(t *testing.T) {
	host := storagetest.NewHost(t)
	b := startOn(t, host)
	require.Equal(t, 200, b.lines(t, startWith("s", at(0), `"resource":{"service.name":"chat"}`), startLine("ended"), startLine("prefill")).status)
	require.Equal(t, 200, b.lines(t, chunkLine("s", 10*time.Millisecond), chunkLine("ended", 10*time.Millisecond), endLine("ended")).status)
	l := b.live(t)
	l.send(t, chunkLine("s", 20*time.Millisecond, `"tokens":3`))
	eventually(t, func() bool {
		return metricValue(t, b, "events_accepted", nil) == 7
	}, "the line of the live body is accepted")
	require.NoError(t, b.Shutdown(t.Context()))
	require.Equal(t, 503, l.wait(t).status)
	require.NoError(t, b.Shutdown(t.Context()), "twice")
	require.Equal(t, "success", b.sink.one(t).Attributes["tokenpulse.outcome"], "no stream was cut")

	b = startOn(t, host)
	requireMetric(t, b, "streams_restored", nil, 2)
	requireMetric(t, b, "streams_open", nil, 2)
	require.Positive(t, metricValue(t, b, "storage_size", nil))
	require.Equal(t, 200, b.lines(t, chunkLine("s", 30*time.Millisecond), endLine("s")).status)
	require.Equal(t, 1, b.lines(t, endLine("ended")).answer.Rejected)
	got := b.sink.one(t)
	require.Equal(t, "chat", got.Resource["service.name"])
	require.Equal(t, []chunk{{10 * time.Millisecond, 1, 0}, {20 * time.Millisecond, 3, 0}, {30 * time.Millisecond, 1, 0}}, got.Chunks)
	require.NoError(t, b.Shutdown(t.Context()))
	b = startOn(t, host)
	requireMetric(t, b, "streams_restored", nil, 1)
}

// Without the storage, no change of an open stream is acknowledged. Ends and whole streams
// do not depend on it.
func TestStorage_RefusesChangesThatCannotBeStored(t *testing.T) {
	host, client := inMemory()
	b := startOn(t, host)
	require.Equal(t, 200, b.lines(t, startLine("s"), startLine("ending")).status)
	client.FailWith(fmt.Errorf("write: %w", storage.ErrStorageFull))
	for range 3 {
		got := b.lines(t, chunkLine("s", time.Millisecond))
		require.Equal(t, 503, got.status)
		require.NotEmpty(t, got.header.Get("Retry-After"))
		require.Contains(t, got.answer.Errors[0].Message, `open streams cannot be stored, so nothing of the request was applied; send it again later, and check the storage "file_storage"`)
	}
	require.Equal(t, 503, b.lines(t, startLine("new")).status)
	require.Equal(t, 200, b.lines(t, startLine("whole"), chunkLine("whole", time.Millisecond), endLine("whole")).status)
	require.Equal(t, 200, b.lines(t, endLine("ending")).status)
	require.Len(t, b.sink.all(), 2)
	requireMetric(t, b, "streams_refused", map[string]string{"limit": "storage"}, 4)
	require.Positive(t, metricValue(t, b, "storage_failures", map[string]string{"operation": "write"}))

	client.FailWith(nil)
	eventually(t, func() bool { return b.lines(t, chunkLine("s", 2*time.Millisecond)).status == 200 }, "the storage works again")
	require.Equal(t, 200, b.lines(t, endLine("s")).status)
	all := b.sink.all()
	require.Equal(t, []chunk{{2 * time.Millisecond, 1, 0}}, all[len(all)-1].Chunks, "refused chunks are not applied")
	require.NoError(t, b.Shutdown(t.Context()))
	b = startOn(t, host)
	requireMetric(t, b, "streams_restored", nil, 0)
}

func TestStorage_CountsWhatCannotBeRestored(t *testing.T) {
	host, client := inMemory()
	b := startOn(t, host)
	for i := range 5 {
		require.Equal(t, 200, b.lines(t, startLine(fmt.Sprint("s", i))).status)
	}
	require.Equal(t, 200, b.lines(t, chunkLine("s0", time.Millisecond)).status)
	require.NoError(t, b.Shutdown(t.Context()))
	client.Values["segment/1"][10] ^= 1 // the start of s0
	b = prepare(t, stored, func(c *Config) { c.MaxStreams = 3 })
	core, logged := observer.New(zap.ErrorLevel)
	b.settings.Logger = zap.New(core)
	require.NoError(t, b.Start(t.Context(), host))
	require.Equal(t, 1, logged.FilterMessageSnippet("restored open streams from the storage, but lost some; raise the limits").Len())
	requireMetric(t, b, "streams_restored", nil, 3)
	requireMetric(t, b, "streams_lost", map[string]string{"cause": "damaged"}, 1)
	requireMetric(t, b, "streams_lost", map[string]string{"cause": "limit"}, 1)
	requireMetric(t, b, "storage_failures", map[string]string{"operation": "read"}, 1)
	require.Equal(t, 200, b.lines(t, endLine("s1")).status)
}

// Builds before version 0.1.0 wrote the version byte 2.
func TestStorage_StartsWithoutTheStreamsOfAnEarlierBuild(t *testing.T) {
	host, client := inMemory()
	b := startOn(t, host)
	require.Equal(t, 200, b.lines(t, startLine("old")).status)
	require.NoError(t, b.Shutdown(t.Context()))
	for _, value := range client.Values {
		value[0] = 2
	}
	b = prepare(t, stored)
	core, logged := observer.New(zap.ErrorLevel)
	b.settings.Logger = zap.New(core)
	require.NoError(t, b.Start(t.Context(), host))
	require.Len(t, logged.All(), 1)
	require.Equal(t, "file_storage", logged.All()[0].ContextMap()["storage"])
	require.Contains(t, logged.All()[0].ContextMap()["damage"], "the index of open streams: written by another build of tokenpulse")
	requireMetric(t, b, "streams_restored", nil, 0)
	require.Equal(t, 200, b.lines(t, startLine("new")).status)
	require.NoError(t, b.Shutdown(t.Context()))
	requireMetric(t, startOn(t, host), "streams_restored", nil, 1)
}

func TestStorage_WrongExtensionFailsTheStart(t *testing.T) {
	host := storagetest.NewHost(t)
	other, err := extensiontest.NewNopFactory().Create(t.Context(), extensiontest.NewNopSettings(extensiontest.NopType), nil)
	require.NoError(t, err)
	host[component.NewID(extensiontest.NopType)] = other
	for name, want := range map[string]string{
		"redis_storage": "`storage` is \"redis_storage\", which is not an extension of this Collector; list it under `extensions` and under `service::extensions`",
		"nop":           "`storage` is \"nop\", which is not a storage extension; name one, such as file_storage",
	} {
		id := component.MustNewID(name)
		b := prepare(t, func(c *Config) { c.StorageID = &id })
		require.EqualError(t, b.Start(t.Context(), host), want)
	}
	broken, client := inMemory()
	client.FailWith(errors.New("input/output error"))
	b := prepare(t, stored)
	require.EqualError(t, b.Start(t.Context(), broken), "`storage` \"file_storage\" cannot be read: input/output error (move its file away and start again)")
}

func TestStorage_ShutdownDoesNotWaitForABlockedStorage(t *testing.T) {
	host, client := inMemory()
	b := startOn(t, host)
	blocked, release := make(chan struct{}), make(chan struct{})
	client.Fail = func(*storage.Operation) error {
		close(blocked)
		<-release
		return errors.New("too late")
	}
	go func() {
		if answer, err := http.Post(b.url(), typeNDJSON, strings.NewReader(startLine("s")+"\n")); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-blocked
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- b.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		require.NoError(t, err, "the Collector would exit with status 1")
	case <-time.After(20 * time.Second):
		require.Fail(t, "the shutdown waits for the storage")
	}
	close(release)
}

// A storage that fails all the time does not fill the log.
func TestStorage_LogsFailuresOnceInAWhile(t *testing.T) {
	b := prepare(t, stored)
	core, logged := observer.New(zap.InfoLevel)
	b.settings.Logger = zap.New(core)
	synctest.Test(t, func(t *testing.T) {
		failed := b.storageFailed()
		for range 3 {
			failed(storage.ErrStorageFull)
			time.Sleep(storageLogInterval / 4)
		}
		require.Equal(t, 1, logged.Len())
		require.Contains(t, logged.All()[0].Message, "raise the maximum size of the extension")
		time.Sleep(storageLogInterval)
		failed(storage.ErrStorageFull)
		require.Equal(t, 2, logged.Len())
	})
	requireMetric(t, b, "storage_failures", map[string]string{"operation": "write"}, 4)
}

// One extension holds both the open streams and the error budgets.
func TestStorage_OfStreamsAndOfBudgetsMayBeTheSame(t *testing.T) {
	host := storagetest.NewHost(t)
	run := func() *pipelines {
		p := inMetricsPipeline(t, nil, stored, ttftSLO, func(c *Config) {
			series := publish.NewDefaultConfig()
			series.Shared.StorageID = &storagetest.FileStorage
			series.Shared.Objectives = []keeper.Objective{{SLO: "ttft", Objective: 0.9, Window: 720 * time.Hour}}
			c.Series = configoptional.Some(series)
		})
		require.NoError(t, p.components[0].Start(t.Context(), host))
		return p
	}
	budget := func(p *pipelines) (counts slo.Counts) {
		p.publisher.Keeper.Tracker.Visit(time.Now(), func(b *slo.Budgets) { counts = b.Each[0].Recent.Budget })
		return counts
	}
	p := run()
	p.sendStream(t, "slow", 2*time.Second)
	for i := range 3 {
		p.sendStream(t, fmt.Sprint("fast ", i), 100*time.Millisecond)
	}
	require.Equal(t, 200, p.lines(t, startLine("open")).status)
	require.Equal(t, slo.Counts{Good: 3, Bad: 1}, budget(p))
	p.stop(t)

	p = run()
	requireMetric(t, p.bench, "streams_restored", nil, 1)
	require.Equal(t, slo.Counts{Good: 3, Bad: 1}, budget(p))
	require.Equal(t, 200, p.lines(t, endLine("open")).status)
	p.stop(t)
}
