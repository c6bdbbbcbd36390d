// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
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
	http, grpc, telemetry, scrape, pprof string

	command *exec.Cmd
	exited  chan struct{}
	log     bytes.Buffer
	usage   *process.Process
	client  http.Client
	calls   [connections]*grpc.ClientConn
}

// start runs a program until stop. It replaces $http, $grpc, $telemetry_port, $scrape and
// $pprof in the arguments by free addresses. Another process may take an address before
// the program listens, so start tries again with other addresses.
func start(arguments []string) (c *collectorProcess, err error) {
	for range 5 {
		if c, err = startOnce(arguments); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func startOnce(arguments []string) (*collectorProcess, error) {
	c := &collectorProcess{
		exited: make(chan struct{}),
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}},
	}
	for _, address := range []*string{&c.http, &c.grpc, &c.telemetry, &c.scrape, &c.pprof} {
		var err error
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	_, telemetryPort, err := net.SplitHostPort(c.telemetry)
	if err != nil {
		return nil, err
	}
	addresses := strings.NewReplacer("$http", c.http, "$grpc", c.grpc, "$scrape", c.scrape, "$telemetry_port", telemetryPort, "$pprof", c.pprof)
	c.command = exec.Command(arguments[0]) //nolint:gosec // the options name the program to measure
	for _, argument := range arguments[1:] {
		c.command.Args = append(c.command.Args, addresses.Replace(argument))
	}
	c.command.Stdout, c.command.Stderr = &c.log, &c.log
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.command.Wait()
		close(c.exited)
	}()
	if err := c.connect(); err != nil {
		c.stop()
		return nil, fmt.Errorf("%w; log of the Collector:\n%s", err, c.log.String())
	}
	return c, nil
}

func (c *collectorProcess) connect() (err error) {
	for _, address := range []string{c.http, c.grpc, c.telemetry} {
		if _, port, _ := strings.Cut(address, ":"); !strings.Contains(strings.Join(c.command.Args, " "), port) {
			continue // this program does not listen there
		}
		if err := c.waitFor(address); err != nil {
			return err
		}
	}
	for i := range c.calls {
		if c.calls[i], err = grpc.NewClient(c.grpc, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			return err
		}
	}
	c.usage, err = process.NewProcess(int32(c.command.Process.Pid))
	return err
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
func (c *collectorProcess) cpuTime() (time.Duration, error) {
	times, err := c.usage.Times()
	if err != nil {
		return 0, err
	}
	return time.Duration((times.User + times.System) * float64(time.Second)), nil
}

// peakMemory returns the peak resident memory in bytes.
func (c *collectorProcess) peakMemory() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, errors.New("/proc has no VmHWM, the peak memory; run the benchmark on Linux")
	}
	kilobytes, err := strconv.Atoi(fields[0])
	return float64(kilobytes) * 1024, err
}

func (c *collectorProcess) waitFor(address string) error {
	for range 200 {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-c.exited:
			return errors.New("the Collector exited")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the Collector does not listen on " + address + " after 10 s")
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
