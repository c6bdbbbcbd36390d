// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import "strings"

// Transport is a wire format of the receiver.
type Transport string

// NDJSON and GRPCStream send each event when it happens, the others whole streams.
const (
	NDJSON     Transport = "ndjson"
	JSON       Transport = "json"
	Protobuf   Transport = "protobuf"
	GRPC       Transport = "grpc"
	GRPCStream Transport = "grpc-stream"
)

// Transports lists all transports.
var Transports = []Transport{NDJSON, JSON, Protobuf, GRPC, GRPCStream}

// Live reports whether the transport sends each event when it happens.
func (t Transport) Live() bool { return t == NDJSON || t == GRPCStream }

// Config selects the receiver and the transport.
type Config struct {
	Transport Transport
	// Endpoint is host:port or a URL; https:// selects TLS. Empty means the
	// receiver's default for the transport.
	Endpoint string
	// Headers are sent with every request.
	Headers map[string]string
	Stats   *Stats
}

const (
	contentTypeNDJSON   = "application/x-ndjson"
	contentTypeJSON     = "application/json"
	contentTypeProtobuf = "application/x-protobuf"
)

// Default endpoints of the receiver.
const (
	defaultHTTPEndpoint = "localhost:4319"
	defaultGRPCEndpoint = "localhost:4320"
)

// address returns the host:port of the endpoint and whether to use TLS.
func (c *Config) address(defaultEndpoint string) (hostPort string, tls bool) {
	if c.Endpoint == "" {
		return defaultEndpoint, false
	}
	if rest, ok := strings.CutPrefix(c.Endpoint, "https://"); ok {
		return rest, true
	}
	return strings.TrimPrefix(c.Endpoint, "http://"), false
}
