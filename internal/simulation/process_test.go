// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector"
	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter"
	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
)

// process is one life of a Collector: its components, made by their factories.
//
//	receiver -> gate -> processor -> fan-out -> exporter, connector (metrics, logs), backend
//
// If the receiver sends series, it writes the latency on its spans itself:
//
//	receiver -> gate -> fan-out -> exporter, connector (logs), backend
//	         -> fan-out -> exporter, sink
type process struct {
	world     *world
	number    int
	telemetry *componenttest.Telemetry
	network   *listener
	tokens    *http.Server // of the receiver
	metrics   http.Handler // of the exporter
	// order is the components as the Collector starts them; it stops them in reverse.
	order []component.Component
	dead  chan struct{} // closed when the process crashes
	since time.Time     // the start of the exporter's rounds
}

var errDead = errors.New("the process is dead")

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

var (
	diskID     = component.MustNewID("disk")
	streamsID  = component.MustNewID("streams") // the disk of open streams
	takeoverID = component.MustNewID("takeover")
)

// host is the Collector that the components run in.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// phase separates the ticks of components, which would otherwise run at the same instant in
// an order that the seed does not decide.
const phase = 137 * time.Microsecond

func (w *world) startProcess() error {
	p := &process{
		world: w, number: w.processes, network: newListener(),
		telemetry: componenttest.NewTelemetry(), dead: make(chan struct{}),
	}
	w.processes++
	takeover := &takeover{}
	extensions := host{takeoverID: takeover, diskID: &diskOf{process: p, disk: w.disk}, streamsID: &diskOf{process: p, disk: w.streamDisk}}
	start := func(c component.Component, err error) error {
		if err != nil {
			return err
		}
		p.order = append(p.order, c)
		return c.Start(context.Background(), extensions)
	}

	exporterFactory := tokensliexporter.NewFactory()
	exporterConfig := exporterFactory.CreateDefaultConfig().(*tokensliexporter.Config)
	p.shared(&exporterConfig.Shared)
	// Worlds share the registry of open streams.
	exporterConfig.Shared.Metrics = map[string]keeper.Metric{names.StreamsOpen: {Enabled: false}}
	if w.path != viaSpans { // the receiver has them
		exporterConfig.Shared.Objectives = nil
	}
	// Percentiles and classic buckets are not compared, and make up most of a scrape.
	exporterConfig.Windows, exporterConfig.Percentiles = nil, nil
	exporterConfig.ClassicBuckets = map[string][]float64{}
	for _, id := range numbers.Histograms {
		exporterConfig.ClassicBuckets[strings.TrimPrefix(id.Row().Metric.Name, names.Prefix)] = []float64{1}
	}
	exporterConfig.Server.NetAddr = w.socket(p, "metrics")
	exporterConfig.Server.Middlewares = []configmiddleware.Config{{ID: takeoverID}}
	exporterSettings := exportertest.NewNopSettings(exporterFactory.Type())
	exporterSettings.ID, exporterSettings.TelemetrySettings = component.NewID(exporterFactory.Type()), p.telemetry.NewTelemetrySettings()
	exporter, err := exporterFactory.CreateTraces(context.Background(), exporterSettings, exporterConfig)
	if err := start(exporter, err); err != nil {
		return err
	}
	series, err := exporterFactory.CreateMetrics(context.Background(), exporterSettings, exporterConfig)
	if err := start(series, err); err != nil {
		return err
	}
	p.since = time.Now()
	p.metrics = takeover.take(exporterConfig.Server.NetAddr.Endpoint).Handler

	time.Sleep(phase)
	connectorFactory := tokensliconnector.NewFactory()
	connectorSettings := connectortest.NewNopSettings(connectorFactory.Type())
	connectorSettings.ID, connectorSettings.TelemetrySettings = component.NewID(connectorFactory.Type()), p.telemetry.NewTelemetrySettings()
	all := []consumer.Traces{exporter, &backend{p}}
	if w.path == viaSpans {
		toMetrics := connectorFactory.CreateDefaultConfig().(*tokensliconnector.Config)
		p.shared(&toMetrics.Publish.Shared)
		toMetrics.Publish.Temporality = w.temporality
		metricsConnector, err := connectorFactory.CreateTracesToMetrics(context.Background(), connectorSettings, toMetrics, &sink{p})
		if err := start(metricsConnector, err); err != nil {
			return err
		}
		all = slices.Insert(all, 1, consumer.Traces(metricsConnector))
	}
	toLogs := connectorFactory.CreateDefaultConfig().(*tokensliconnector.Config)
	p.shared(&toLogs.Publish.Shared)
	logsConnector, err := connectorFactory.CreateTracesToLogs(context.Background(), connectorSettings, toLogs, &sink{p})
	if err := start(logsConnector, err); err != nil {
		return err
	}
	all = slices.Insert(all, len(all)-1, consumer.Traces(logsConnector))
	consumers := must(consumer.NewTraces(fanOut(consumer.Traces.ConsumeTraces, all)))

	processorFactory := tokenlatencyprocessor.NewFactory()
	processorConfig := processorFactory.CreateDefaultConfig().(*tokenlatencyprocessor.Config)
	processorConfig.SLOs = slos()
	processorSettings := processortest.NewNopSettings(processorFactory.Type())
	processorSettings.TelemetrySettings = p.telemetry.NewTelemetrySettings()
	processor, err := processorFactory.CreateTraces(context.Background(), processorSettings, processorConfig, consumers)
	if err := start(processor, err); err != nil {
		return err
	}

	time.Sleep(phase)
	receiverFactory := tokenstreamreceiver.NewFactory()
	receiverConfig := receiverFactory.CreateDefaultConfig().(*tokenstreamreceiver.Config)
	receiverConfig.MaxStreams, receiverConfig.MaxSharePerClient = w.maxStreams, w.maxShare
	receiverConfig.IdleTimeout, receiverConfig.FirstTokenTimeout = w.idle, w.firstToken
	receiverConfig.MaxMemoryMiB, receiverConfig.MaxLiveRequests = maxMemoryMiB, w.maxLive
	if w.durable {
		receiverConfig.StorageID = &streamsID
	}
	receiverConfig.Protocols.GRPC = configoptional.None[configgrpc.ServerConfig]()
	server := receiverConfig.Protocols.HTTP.Get()
	server.NetAddr = w.socket(p, "tokens")
	server.Middlewares = []configmiddleware.Config{{ID: takeoverID}}
	p.configureSeries(receiverConfig)
	if err := receiverConfig.Validate(); err != nil {
		return err
	}
	receiverSettings := receivertest.NewNopSettings(receiverFactory.Type())
	receiverSettings.ID, receiverSettings.TelemetrySettings = component.NewID(receiverFactory.Type()), p.telemetry.NewTelemetrySettings()
	ctx := context.Background()
	if w.path == viaSpans {
		err = start(receiverFactory.CreateTraces(ctx, receiverSettings, receiverConfig, &gate{p, processor}))
	} else {
		// All are created before one of them is started, as the Collector does.
		toMetrics := must(consumer.NewMetrics(fanOut(consumer.Metrics.ConsumeMetrics, []consumer.Metrics{series, &sink{p}})))
		receivers := []component.Component{must(receiverFactory.CreateMetrics(ctx, receiverSettings, receiverConfig, toMetrics))}
		if w.path == withSample {
			receivers = append(receivers, must(receiverFactory.CreateTraces(ctx, receiverSettings, receiverConfig, &gate{p, consumers})))
		}
		for _, c := range receivers {
			err = errors.Join(err, start(c, nil))
		}
	}
	if err != nil {
		return err
	}
	p.tokens = takeover.take(server.NetAddr.Endpoint)
	go func() { _ = p.tokens.Serve(p.network) }()
	w.process = p
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// slos are those that the model judges requests by.
func slos() []judge.SLOConfig {
	return []judge.SLOConfig{
		{Name: "ttft", Indicator: "time_to_first_token", Threshold: ttftThreshold.String()},
		{Name: "tpot", Indicator: "time_per_output_token", Threshold: tpotThreshold.String()},
	}
}

const (
	maxMemoryMiB   = 1
	ttftThreshold  = time.Second
	stallThreshold = 500 * time.Millisecond // the default of token_latency
	tpotThreshold  = 50 * time.Millisecond
	sloTarget      = 0.9
	budgetWindow   = 720 * time.Hour
)

// shared fills the settings that the exporter and the connector share.
func (p *process) shared(c *keeper.Config) {
	w := p.world
	c.Series.Dimensions = series.DimensionsOf("service.name", "gen_ai.request.model")
	c.Series.MaxSeries, c.Series.SeriesExpiration = w.maxSeries, w.expiration
	c.Deduplication.Horizon, c.Deduplication.MaxSpans = dedupHorizon, w.maxSpans
	c.Conventions = conventions.Config{GenAI: []string{"latest"}, Attributes: []string{"gen_ai.request.model"}}
	c.Objectives = []keeper.Objective{{SLO: "ttft", Objective: sloTarget, Window: budgetWindow}}
	if w.storage {
		c.StorageID = &diskID
	}
}

// dedupHorizon is longer than a run.
const dedupHorizon = 24 * time.Hour

func (w *world) socket(p *process, name string) confignet.AddrConfig {
	address := confignet.NewDefaultAddrConfig()
	address.Transport = confignet.TransportTypeUnix
	address.Endpoint = filepath.Join(w.folder, fmt.Sprintf("%d-%d-%s", w.seed, p.number, name))
	return address
}

// takeover is an extension that finds the HTTP server of a component. The server first
// listens on a real socket, because the Collector has no other kind. A goroutine that waits
// for a real socket keeps the virtual clock from advancing, so the socket is closed, and the
// server goes on with connections in memory.
type takeover struct {
	component.StartFunc
	component.ShutdownFunc
	server *http.Server
}

const takeoverPath = "/takeover"

// GetHTTPHandler returns a middleware that finds the server.
func (t *takeover) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, base http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == takeoverPath {
				t.server = r.Context().Value(http.ServerContextKey).(*http.Server)
				w.Header().Set("Connection", "close")
				return
			}
			base.ServeHTTP(w, r)
		}), nil
	}, nil
}

// take returns the server that listens on a socket, and closes the socket.
func (t *takeover) take(socket string) *http.Server {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: collector\r\n\r\n", takeoverPath)
	if _, err := io.Copy(io.Discard, connection); err != nil {
		panic(err)
	}
	for _, key := range reflect.ValueOf(t.server).Elem().FieldByName("listeners").MapKeys() {
		_ = (*(*net.Listener)(key.UnsafePointer())).Close()
	}
	return t.server
}

// crash ends the process without a chance to do anything. The components stay as they are;
// then they are shut down, so that they leave no goroutines. Nothing that they do meanwhile
// reaches the world: the gate, the sinks, the disk and the network of a dead process refuse.
func (p *process) crash() {
	close(p.dead)
	_ = p.network.Close()
	p.network.sever()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.stop(ctx)
}

// stop shuts the components down in the order of the Collector.
func (p *process) stop(ctx context.Context) {
	for _, c := range slices.Backward(p.order) {
		_ = c.Shutdown(ctx)
	}
	_ = p.network.Close()
	p.network.sever()
}
