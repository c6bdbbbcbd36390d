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
	"sync"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// path is one way of getting streams into a Collector.
type path struct {
	name          string
	config        string // with the address to listen on as %[1]s
	target        string
	body          []byte
	nanosPerToken []float64
}

const tokenStreamConfig = `
receivers: {token_stream: {protocols: {http: {endpoint: "%[1]s"}, grpc: {endpoint: "localhost:0"}}}}
processors: {token_latency: {}}
exporters: {token_sli: {endpoint: "localhost:0"}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}}
`

const otlpConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "%[1]s"}}}}
exporters: {nop: {}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}
`

const (
	connections = 2
	warmUp      = 20 // requests before the measurement: heap and connections settle
)

// round starts a Collector, sends the path's body so many times, and returns the
// CPU time that this took the Collector.
func (p *path) round(collector string, requests int) (time.Duration, error) {
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	command := exec.Command(collector, "--config", "yaml:"+fmt.Sprintf(p.config, address))
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	}()
	if err := waitFor(address); err != nil {
		return 0, fmt.Errorf("%w; the Collector wrote:\n%s", err, log.String())
	}
	url := "http://" + address + p.target
	if err := p.send(url, warmUp); err != nil {
		return 0, err
	}
	before, err := cpuTime(command.Process)
	if err != nil {
		return 0, err
	}
	if err := p.send(url, requests); err != nil {
		return 0, err
	}
	after, err := cpuTime(command.Process)
	return after - before, err
}

func (p *path) send(url string, requests int) error {
	var group sync.WaitGroup
	failures := make([]error, connections)
	for connection := range connections {
		group.Go(func() {
			for i := connection; i < requests && failures[connection] == nil; i += connections {
				failures[connection] = post(url, p.body)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

func post(url string, body []byte) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return err
}

func cpuTime(p *os.Process) (time.Duration, error) {
	of, err := process.NewProcess(int32(p.Pid))
	if err != nil {
		return 0, err
	}
	times, err := of.Times()
	if err != nil {
		return 0, err
	}
	return time.Duration((times.User + times.System) * float64(time.Second)), nil
}

func waitFor(address string) error {
	for range 200 {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return connection.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the Collector does not listen on " + address)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
