// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

const (
	textFormat     = "text/plain;version=0.0.4"
	protobufFormat = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// metrics returns the metrics that an address of the Collector publishes.
func (c *collectorProcess) metrics(address, accept string) ([]byte, error) {
	return c.get(address, "/metrics", accept)
}

func (c *collectorProcess) get(address, target, accept string) ([]byte, error) {
	response, err := c.open(address, target, accept)
	if err != nil {
		return nil, err
	}
	return readResponse(response)
}

// open sends a request. The caller must read and close the body.
func (c *collectorProcess) open(address, target, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return c.client.Do(request)
}

func readResponse(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// sum adds up all series of a metric in the Prometheus text format.
func sum(text []byte, metric string) (total float64) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), metric)
		if !found || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err == nil {
			total += value
		}
	}
	return total
}

// countHistograms counts the histograms in the Prometheus protobuf format.
func countHistograms(exposition []byte) (count int, err error) {
	for reader := bufio.NewReader(bytes.NewReader(exposition)); ; {
		var family dto.MetricFamily
		err := protodelim.UnmarshalFrom(reader, &family)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		for _, metric := range family.Metric {
			if metric.Histogram != nil {
				count++
			}
		}
	}
}
