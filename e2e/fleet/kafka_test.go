// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// Workers read spans from Kafka as one consumer group. One joins and one is killed while
// requests arrive. A request is acknowledged once Kafka has it, so none is lost on the
// way to a worker:
//   - records that the dead worker counted but did not commit are counted twice: at most
//     the uncommitted records of its partitions;
//   - requests that it counted after Prometheus' last scrape of it are lost: at most the
//     records that it committed since that scrape;
//   - a worker that joins costs nothing.
//
// The broker is franz-go's kfake, not Apache Kafka: it speaks the protocol and has
// consumer groups, but no replicas and no disk.
func TestFleetExampleKafka_KilledWorkerCostsAtMostWhatWasUncommittedOrNotScraped(t *testing.T) {
	broker := startKafka(t)
	gateway := startFleetGateway(t, "kafka-gateway.yaml")
	workers := map[string]*collector.Collector{}
	join := func(name string) {
		collector.Setenv(t, "WORKER_NAME", name)
		workers[name] = startFleetWorker(t, "kafka-worker.yaml")
	}
	const victim = "worker-0"
	join(victim)
	join("worker-1")
	load := startFleetLoad(t, gateway.HTTP)
	load.waitFor(t, 100)
	join("worker-2")
	broker.waitUntil(t, "all workers have partitions", func(all partitions) bool {
		return all.assigned("worker-0") && all.assigned("worker-1") && all.assigned("worker-2")
	})
	server := prometheusOf(t, map[string][]*collector.Collector{"fleet": slices.Collect(maps.Values(workers))})
	server.WaitUntil(t, "count(sum by (instance) (tokenpulse_requests_total) > 50) == 3")

	// The offsets at each moment, to know those at the last scrape.
	history := []partitions{broker.partitions(t)}
	require.Eventually(t, func() bool {
		history = append(history, broker.partitions(t))
		_, lastScrape := lastScraped(t, server, workers[victim])
		return len(history) > 10 && lastScrape.After(history[0].at)
	}, collector.Patience, 50*time.Millisecond, "Prometheus does not scrape the worker")
	beforeKill, countedBefore := broker.partitions(t), requests(t, workers[victim])
	workers[victim].Kill(t)
	atKill := broker.partitions(t)
	load.waitFor(t, 200)
	sent := load.finish(t)
	broker.waitUntil(t, "everything is committed by the other workers", func(all partitions) bool {
		return all.uncommitted() == 0 && !all.assigned(victim)
	})

	goneOn := 0
	for name, w := range workers {
		if name != victim {
			goneOn += requests(t, w)
		}
	}
	lastCounted, lastScrape := lastScraped(t, server, workers[victim])
	atScrape := history[0]
	for _, known := range history {
		if known.at.Before(lastScrape) {
			atScrape = known
		}
	}
	uncommitted := atKill.of(victim).uncommitted()
	// The test's own scrape, just before the kill, leaves less room than Prometheus'.
	for _, last := range []struct {
		by      string
		counted int
		offsets partitions
	}{{"Prometheus", lastCounted, atScrape}, {"the test", countedBefore, beforeKill}} {
		counted, notScraped := last.counted+goneOn, atKill.of(victim).committed()-last.offsets.of(victim).committed()
		t.Logf("scraped by %s: %d requests, counted %d; uncommitted when the worker was killed: %d; committed since its last scrape: %d",
			last.by, sent, counted, uncommitted, notScraped)
		require.LessOrEqual(t, counted, sent+uncommitted, "requests are counted twice")
		require.GreaterOrEqual(t, counted, sent-notScraped, "acknowledged requests are lost")
	}
}

type kafka struct{ offsets string }

// startKafka runs a broker, and sets the address of it that the examples read.
func startKafka(t *testing.T) *kafka {
	t.Helper()
	address := collector.FreeAddress(t)
	p := collector.StartProcess(t, collector.Built(t, "fleet/kafkabroker"), address, "token_spans", "12", "token_workers")
	p.WaitForListener(t, address)
	broker, _, _ := strings.Cut(p.Output(t), "\n")
	collector.Setenv(t, "KAFKA_BROKER", broker)
	return &kafka{offsets: "http://" + address}
}

// partitions are the offsets of the consumer group at a moment.
type partitions struct {
	at  time.Time
	all map[string]partitionOffsets
}

type partitionOffsets struct {
	Consumer            string
	Committed, Produced int
}

func (k *kafka) partitions(t *testing.T) partitions {
	t.Helper()
	var known partitions
	require.NoError(t, json.Unmarshal(collector.Get(t, k.offsets, "application/json"), &known.all))
	known.at = time.Now() // the offsets are not newer
	return known
}

func (k *kafka) waitUntil(t *testing.T, what string, reached func(partitions) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return reached(k.partitions(t)) }, 2*collector.Patience, 100*time.Millisecond, what)
}

func (p partitions) of(consumer string) partitions {
	of := partitions{at: p.at, all: map[string]partitionOffsets{}}
	for id, offsets := range p.all {
		if offsets.Consumer == consumer {
			of.all[id] = offsets
		}
	}
	return of
}

func (p partitions) assigned(consumer string) bool { return len(p.of(consumer).all) > 0 }

func (p partitions) committed() int {
	n := 0
	for _, offsets := range p.all {
		n += offsets.Committed
	}
	return n
}

func (p partitions) uncommitted() int {
	n := 0
	for _, offsets := range p.all {
		n += offsets.Produced - offsets.Committed
	}
	return n
}
