// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	tokensPath       = "/v1/tokens"
	maxResponseBytes = 64 << 10
)

// httpClient posts to the receiver.
type httpClient struct {
	client  *http.Client
	url     string
	headers map[string]string
	stats   *Stats
}

func newHTTPClient(config Config) *httpClient {
	hostPort, tls := config.address(defaultHTTPEndpoint)
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	return &httpClient{
		client:  &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
		url:     scheme + strings.TrimSuffix(hostPort, "/") + tokensPath,
		headers: config.Headers,
		stats:   config.Stats,
	}
}

func (c *httpClient) Close(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// post sends one body and reads the response.
func (c *httpClient) post(ctx context.Context, contentType string, body io.Reader) (response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
	if err != nil {
		return response{}, err
	}
	for key, value := range c.headers {
		request.Header.Set(key, value)
	}
	request.Header.Set("Content-Type", contentType)
	httpResponse, err := c.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return response{}, err
		}
		return response{}, &retryableError{cause: err}
	}
	defer httpResponse.Body.Close()
	text, err := io.ReadAll(io.LimitReader(httpResponse.Body, maxResponseBytes))
	if err != nil {
		return response{}, &retryableError{cause: err}
	}
	if httpResponse.StatusCode/100 == 2 {
		return parseResponse(httpResponse.Header.Get("Content-Type"), text)
	}
	err = fmt.Errorf("%s answered %s: %s", c.url, httpResponse.Status, strings.TrimSpace(string(text)))
	switch httpResponse.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// The receiver may have processed the first events of a long body.
		r, _ := parseJSONResponse(text)
		return r, &retryableError{cause: err, retryAfter: retryAfter(httpResponse.Header), processed: r.accepted + int(r.rejected)}
	case http.StatusBadRequest:
		// After a restart, a live request may have only events of streams that the
		// receiver does not know any more. Traffic goes on with the next streams.
		if r, _ := parseJSONResponse(text); r.rejected > 0 {
			return r, nil
		}
	}
	return response{}, err
}

// retryAfter reads the header in both of its forms, seconds and a date.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return time.Until(date)
	}
	return 0
}
