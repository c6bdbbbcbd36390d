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

// busyConnections keep two cores busy: while one waits, others are served.
const busyConnections = 8

// coresTable tells how many times the requests a second core lets through. On a machine
// of two, a Collector would share the second with what drives it. So here both are in
// this process, which has one core or two. What two pipelines do that share nothing
// with each other is the most that this machine and Go's runtime let one do.
func coresTable(rounds int, each time.Duration) (string, error) {
	if runtime.NumCPU() < 2 {
		return "", nil
	}
	var shared, apart []*pipeline
	for range 2 {
		p, err := startPipeline()
		if err != nil {
			return "", err
		}
		defer p.stop()
		shared, apart = []*pipeline{p, p}, append(apart, p)
	}
	var alone, together []float64
	for range rounds {
		var one, two, limit float64
		for range turns { // a machine that is slower for a while is slower for all
			for _, measured := range []struct {
				requests *float64
				cores    int
				by       []*pipeline
			}{{&one, 1, shared}, {&two, 2, shared}, {&limit, 2, apart}} {
				requests, err := send(measured.by, measured.cores, each/turns)
				if err != nil {
					return "", err
				}
				*measured.requests += requests
			}
		}
		together, alone = append(together, two/one), append(alone, limit/one)
	}
	row := func(name string, ratios []float64, g goal) []string {
		return []string{name, number(median(ratios)), spread(ratios), g.String(), g.verdict(median(ratios))}
	}
	return table([]string{"requests a second on two cores / on one", "median", "min .. max", "goal", "met"}, [][]string{
		row("one pipeline", together, goal{atLeast: 1.8}),
		row("two pipelines, that share nothing", alone, goal{}),
	}), nil
}

// pipeline is our three components in this process.
type pipeline struct {
	components []component.Component
	to         collectorProcess // its address and a client
	sends      [busyConnections]action
}

func startPipeline() (*pipeline, error) {
	p := &pipeline{}
	for i := range p.sends {
		body := tokenStreams(plan(fmt.Sprint("connection-", i), tokensPerStream))
		p.sends[i] = post("/v1/tokens", protobufType, same(body))
	}
	p.to.client.Transport = &http.Transport{MaxIdleConnsPerHost: busyConnections, DisableCompression: true}
	var scrape string
	for _, address := range []*string{&p.to.http, &scrape} {
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
	receiverConfig, err := configure(receivers, map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": p.to.http}}})
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

// stop stops first what comes first in the pipeline.
func (p *pipeline) stop() {
	for len(p.components) > 0 {
		last := len(p.components) - 1
		_ = p.components[last].Shutdown(context.Background())
		p.components = p.components[:last]
	}
	p.to.client.CloseIdleConnections()
}

// send returns how many requests a second so many cores let through. The connections
// are divided among the pipelines.
func send(pipelines []*pipeline, cores int, each time.Duration) (_ float64, err error) {
	restore, err := confine(cores)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	var (
		group    sync.WaitGroup
		answered [busyConnections]int
		failures [busyConnections]error
	)
	begin := time.Now()
	for i := range busyConnections {
		p := pipelines[i%len(pipelines)]
		group.Go(func() {
			for time.Since(begin) < each && failures[i] == nil {
				failures[i] = p.sends[i](&p.to, 0)
				answered[i]++
			}
		})
	}
	group.Wait()
	took, all := time.Since(begin), 0
	for _, n := range answered {
		all += n
	}
	return float64(all) / took.Seconds(), errors.Join(failures[:]...)
}
