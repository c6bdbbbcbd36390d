// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connections is how many connections send concurrently. Each waits for its responses.
const connections = 2

// collectorProcess is a running Collector and the driver's connections to it.
type collectorProcess struct {
	// Addresses of the receivers, of its own metrics, and of the published metrics.
	http, grpc, telemetry, scrape string

	command *exec.Cmd
	exited  chan struct{}
	log     bytes.Buffer
	usage   *process.Process
	client  http.Client
	calls   [connections]*grpc.ClientConn
}

// start runs a program until stop. It replaces $http, $grpc, $telemetry_port and $scrape
// in the arguments by free addresses. Another process may take an address before
// the program listens, so start tries again with other addresses. The environment is that of the driver and more.
func start(arguments []string, environment ...string) (c *collectorProcess) {
	var err error
	for range 5 {
		if err = caught(func() { c = startOnce(arguments, environment) }); err == nil {
			return c
		}
	}
	try(err)
	return nil
}

func startOnce(arguments, environment []string) *collectorProcess {
	c := &collectorProcess{
		exited: make(chan struct{}),
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}},
	}
	for _, address := range []*string{&c.http, &c.grpc, &c.telemetry, &c.scrape} {
		*address = freeAddress()
	}
	_, telemetryPort, _ := strings.Cut(c.telemetry, ":")
	addresses := strings.NewReplacer("$http", c.http, "$grpc", c.grpc, "$scrape", c.scrape, "$telemetry_port", telemetryPort)
	c.command = exec.Command(arguments[0]) //nolint:gosec // the options name the program to measure
	for _, argument := range arguments[1:] {
		c.command.Args = append(c.command.Args, addresses.Replace(argument))
	}
	c.command.Env = append(os.Environ(), environment...)
	c.command.Stdout, c.command.Stderr = &c.log, &c.log
	try(c.command.Start())
	go func() {
		_ = c.command.Wait()
		close(c.exited)
	}()
	if err := caught(c.connect); err != nil {
		c.stop()
		try(fmt.Errorf("%w; log of the Collector:\n%s", err, c.log.String()))
	}
	return c
}

func (c *collectorProcess) connect() {
	for _, address := range []string{c.http, c.grpc, c.telemetry} {
		if _, port, _ := strings.Cut(address, ":"); !strings.Contains(strings.Join(c.command.Args, " "), port) {
			continue // this program does not listen there
		}
		c.waitFor(address)
	}
	for i := range c.calls {
		c.calls[i] = must(grpc.NewClient(c.grpc, grpc.WithTransportCredentials(insecure.NewCredentials())))
	}
	c.usage = must(process.NewProcess(int32(c.command.Process.Pid)))
}

func (c *collectorProcess) stop() {
	for _, call := range c.calls {
		if call != nil {
			_ = call.Close()
		}
	}
	c.client.CloseIdleConnections()
	_ = c.command.Process.Signal(syscall.SIGTERM)
	<-c.exited
}

// kill stops a Collector without a shutdown.
func (c *collectorProcess) kill() {
	_ = c.command.Process.Kill()
	c.stop()
}

// cpuTime returns the user and kernel time of the process.
func (c *collectorProcess) cpuTime() time.Duration {
	times := must(c.usage.Times())
	return time.Duration((times.User + times.System) * float64(time.Second))
}

// peakMemory returns the peak resident memory in bytes.
func (c *collectorProcess) peakMemory() float64 {
	_, rest, found := strings.Cut(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", c.command.Process.Pid)))), "VmHWM:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		try(errors.New("/proc has no VmHWM, the peak memory; run the benchmark on Linux"))
	}
	return float64(must(strconv.Atoi(fields[0]))) * 1024
}

func (c *collectorProcess) waitFor(address string) {
	for range 200 {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			try(connection.Close())
			return
		}
		select {
		case <-c.exited:
			try(errors.New("the Collector exited"))
		case <-time.After(50 * time.Millisecond):
		}
	}
	try(errors.New("the Collector does not listen on " + address + " after 10 s"))
}

func freeAddress() string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	try(listener.Close())
	return listener.Addr().String()
}

const (
	textFormat     = "text/plain;version=0.0.4"
	protobufFormat = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

func (c *collectorProcess) get(address, target, accept string) []byte {
	return readResponse(c.open(address, target, accept))
}

// open sends a request. The caller must read and close the body.
func (c *collectorProcess) open(address, target, accept string) *http.Response {
	url := "http://" + address + target
	request := must(http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody))
	request.Header.Set("Accept", accept)
	return must(c.client.Do(request))
}

func readResponse(response *http.Response) []byte {
	defer response.Body.Close()
	body := must(io.ReadAll(response.Body))
	if response.StatusCode != http.StatusOK {
		try(fmt.Errorf("%s: %s", response.Status, body))
	}
	return body
}

// metrics returns the metrics that an address of the Collector publishes, in Prometheus' text format.
func (c *collectorProcess) metrics(address string) string {
	return string(c.get(address, "/metrics", textFormat))
}

// sum adds up all series of a metric.
func sum(metrics, metric string) (total float64) {
	for line := range strings.Lines(metrics) {
		rest, found := strings.CutPrefix(line, metric)
		if found && (rest[0] == '{' || rest[0] == ' ') {
			total += must(strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64))
		}
	}
	return total
}
