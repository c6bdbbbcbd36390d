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

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
)

// busyConnections is enough to keep two cores busy.
const busyConnections = 8

// coresTable measures how much a second core increases the throughput. The pipeline and
// the driver run in this process, on one core or two, because on a machine of two cores
// a Collector would share the second core with the driver. Two independent pipelines
// show the limit of the machine and the Go runtime.
func coresTable(rounds int, each time.Duration) (string, error) {
	if runtime.NumCPU() < 2 {
		return "", nil
	}
	var pipelines []*pipeline
	for range 2 {
		p, err := startPipeline()
		if err != nil {
			return "", err
		}
		defer p.stop()
		pipelines = append(pipelines, p)
	}
	var shared, independent []float64
	for range rounds {
		var one, two, limit float64
		for range turns { // a noisy machine affects all three
			for _, measured := range []struct {
				requests  *float64
				cores     int
				pipelines []*pipeline
			}{{&one, 1, pipelines[:1]}, {&two, 2, pipelines[:1]}, {&limit, 2, pipelines}} {
				requests, err := throughput(measured.pipelines, measured.cores, each/turns)
				if err != nil {
					return "", err
				}
				*measured.requests += requests
			}
		}
		shared, independent = append(shared, two/one), append(independent, limit/one)
	}
	return table([]string{"requests per second on two cores / on one", "median", "min .. max", "goal", "met"}, [][]string{
		goal{atLeast: 1.8}.ratioRow("one pipeline", shared),
		goal{}.ratioRow("two independent pipelines", independent),
	}), nil
}

// pipeline runs the three components in this process.
type pipeline struct {
	components []component.Component
	process    collectorProcess // only its address and client are used
	actions    [busyConnections]action
}

func startPipeline() (*pipeline, error) {
	p := &pipeline{}
	for i := range p.actions {
		body := tokenStreams(plan(fmt.Sprint("connection-", i), tokensPerStream))
		p.actions[i] = post("/v1/tokens", protobufType, same(body))
	}
	p.process.client.Transport = &http.Transport{MaxIdleConnsPerHost: busyConnections, DisableCompression: true}
	var scrape string
	for _, address := range []*string{&p.process.http, &scrape} {
		var err error
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}

	exporters, processors, receivers := tokensliexporter.NewFactory(), tokenlatencyprocessor.NewFactory(), tokenstreamreceiver.NewFactory()
	background := context.Background()
	exporterConfig, err := configure(exporters, map[string]any{"endpoint": scrape})
	if err != nil {
		return nil, err
	}
	exporter, err := exporters.CreateTraces(background, exportertest.NewNopSettings(exporters.Type()), exporterConfig)
	if err != nil {
		return nil, err
	}
	processor, err := processors.CreateTraces(background, processortest.NewNopSettings(processors.Type()), processors.CreateDefaultConfig(), exporter)
	if err != nil {
		return nil, err
	}
	receiverConfig, err := configure(receivers, map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": p.process.http}}})
	if err != nil {
		return nil, err
	}
	receiver, err := receivers.CreateTraces(background, receivertest.NewNopSettings(receivers.Type()), receiverConfig, processor)
	if err != nil {
		return nil, err
	}
	for _, c := range []component.Component{exporter, processor, receiver} {
		if err := c.Start(background, componenttest.NewNopHost()); err != nil {
			p.stop()
			return nil, err
		}
		p.components = append(p.components, c)
	}
	return p, nil
}

func configure(f component.Factory, settings map[string]any) (component.Config, error) {
	config := f.CreateDefaultConfig()
	return config, confmap.NewFromStringMap(settings).Unmarshal(config)
}

// stop stops the components in the order of the pipeline, the receiver first.
func (p *pipeline) stop() {
	for len(p.components) > 0 {
		last := len(p.components) - 1
		_ = p.components[last].Shutdown(context.Background())
		p.components = p.components[:last]
	}
	p.process.client.CloseIdleConnections()
}

// throughput returns the requests per second with a number of cores. The connections are
// divided among the pipelines.
func throughput(pipelines []*pipeline, cores int, each time.Duration) (_ float64, err error) {
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
		p := pipelines[i%len(pipelines)]
		group.Go(func() {
			for time.Since(begin) < each && failures[i] == nil {
				failures[i] = p.actions[i](&p.process, 0)
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
