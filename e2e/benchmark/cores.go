// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
)

// busyConnections is enough to keep two cores busy.
const busyConnections = 8

// coresTable measures how much a second core increases the throughput. The receiver and
// the driver run in this process, on one core or two, because on a machine of two cores
// a Collector would share the second core with the driver. Two receivers that share
// nothing show the limit of the machine and the Go runtime.
func coresTable(rounds int, each time.Duration) (string, error) {
	if runtime.NumCPU() < 2 {
		return "", nil
	}
	var rows [][]string
	for _, l := range []load{fixed("four series", 50, 500), fixed("one hot series", 50, 500).ofSeries(1), fixed("streams of 10 tokens", 500, 10)} {
		one, both, err := scaling(l, rounds, each)
		if err != nil {
			return "", err
		}
		rows = append(rows, []string{l.name, number(median(one)), spread(one), number(median(both)), spread(both)})
	}
	return table([]string{"two cores / one core", "one receiver", "min .. max", "two that share nothing", "min .. max"}, rows), nil
}

// scaling returns how many times more requests per second two cores answer than one core,
// with one receiver and with two, in each round.
func scaling(l load, rounds int, each time.Duration) (shared, independent []float64, err error) {
	var receivers []*inProcess
	for range 2 {
		r, err := startInProcess(l)
		if err != nil {
			return nil, nil, err
		}
		defer r.stop()
		receivers = append(receivers, r)
	}
	for range rounds {
		var one, two, limit float64
		for range turns { // a noisy machine affects all three
			for _, measured := range []struct {
				requests  *float64
				cores     int
				receivers []*inProcess
			}{{&one, 1, receivers[:1]}, {&two, 2, receivers[:1]}, {&limit, 2, receivers}} {
				requests, err := throughput(measured.receivers, measured.cores, each/turns)
				if err != nil {
					return nil, nil, err
				}
				*measured.requests += requests
			}
		}
		shared, independent = append(shared, two/one), append(independent, limit/one)
	}
	return shared, independent, nil
}

// inProcess is a receiver in this process that makes series.
type inProcess struct {
	receiver receiver.Metrics
	process  collectorProcess // only its address and client are used
	actions  [busyConnections]action
}

func startInProcess(l load) (r *inProcess, err error) {
	r = &inProcess{}
	for i := range r.actions {
		r.actions[i] = same(tokenStreams(l.streams(fmt.Sprint("connection-", i), 0), 0, 1)).inTurn(postTokens)
	}
	r.process.client.Transport = &http.Transport{MaxIdleConnsPerHost: busyConnections, DisableCompression: true}
	if r.process.http, err = freeAddress(); err != nil {
		return nil, err
	}
	factory := tokenstreamreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	err = confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": r.process.http}}, "series": map[string]any{},
	}).Unmarshal(config)
	if err != nil {
		return nil, err
	}
	background := context.Background()
	r.receiver, err = factory.CreateMetrics(background, receivertest.NewNopSettings(factory.Type()), config, consumertest.NewNop())
	if err != nil {
		return nil, err
	}
	return r, r.receiver.Start(background, componenttest.NewNopHost())
}

func (r *inProcess) stop() {
	_ = r.receiver.Shutdown(context.Background())
	r.process.client.CloseIdleConnections()
}

// throughput returns the requests per second with a number of cores. The connections are
// divided among the receivers.
func throughput(receivers []*inProcess, cores int, each time.Duration) (_ float64, err error) {
	restore, err := confine(cores)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	var (
		group    sync.WaitGroup
		done     [busyConnections]int
		failures [busyConnections]error
	)
	begin := time.Now()
	for i := range busyConnections {
		r := receivers[i%len(receivers)]
		group.Go(func() {
			for time.Since(begin) < each && failures[i] == nil {
				failures[i] = r.actions[i](&r.process, 0)
				done[i]++
			}
		})
	}
	group.Wait()
	elapsed, total := time.Since(begin), 0
	for _, n := range done {
		total += n
	}
	return float64(total) / elapsed.Seconds(), errors.Join(failures[:]...)
}
