// Package send tells a token_stream receiver about streams, over each of its
// wire formats.
package send

import (
	"context"
	"fmt"
	"strings"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// Sender tells about parts of streams, in order.
type Sender interface {
	// Send tells about the parts. It retries while the receiver asks for it; an
	// error means that it gave up. What it sent may still lack its
	// acknowledgement.
	Send(ctx context.Context, parts []stream.Part) error
	// Close waits until all that was sent is acknowledged.
	Close(ctx context.Context) error
}

// Transport is a wire format of the receiver.
type Transport string

// Live transports tell about events as they happen, the others about whole streams.
const (
	NDJSON     Transport = "ndjson"
	JSON       Transport = "json"
	Protobuf   Transport = "protobuf"
	GRPC       Transport = "grpc"
	GRPCStream Transport = "grpc-stream"
)

// Transports lists them all.
var Transports = []Transport{NDJSON, JSON, Protobuf, GRPC, GRPCStream}

// Live reports whether the transport tells about events as they happen.
func (t Transport) Live() bool { return t == NDJSON || t == GRPCStream }

// Config says where to send.
type Config struct {
	Transport Transport
	// Endpoint is host:port, or a URL: with https:// the connection uses TLS.
	// Empty: the receiver's default for the transport.
	Endpoint string
	// Headers go with every request.
	Headers map[string]string
	// Tally counts what happens.
	Tally *Tally
}

// The receiver's defaults.
const (
	defaultHTTPEndpoint = "localhost:4319"
	defaultGRPCEndpoint = "localhost:4320"
)

// New returns the sender for the config.
func New(config Config) (Sender, error) {
	retrier := newRetrier(config.Tally)
	switch config.Transport {
	case NDJSON:
		client := newHTTPClient(config)
		return &live{retrier: retrier, open: client.openNDJSON, close: client.close}, nil
	case JSON:
		return &batchSender{retrier: retrier, httpClient: newHTTPClient(config), contentType: contentTypeJSON, encode: encodeJSON}, nil
	case Protobuf:
		return &batchSender{retrier: retrier, httpClient: newHTTPClient(config), contentType: contentTypeProtobuf, encode: encodeProtobuf}, nil
	case GRPC:
		client, err := newGRPCClient(config)
		if err != nil {
			return nil, err
		}
		return &grpcSender{retrier: retrier, grpcClient: client}, nil
	case GRPCStream:
		client, err := newGRPCClient(config)
		if err != nil {
			return nil, err
		}
		return &live{retrier: retrier, open: client.openStream, close: client.close}, nil
	default:
		return nil, fmt.Errorf("unknown transport %q: it is one of %v", config.Transport, Transports)
	}
}

// address splits an endpoint into host:port and whether to use TLS.
func address(endpoint, byDefault string) (hostPort string, tls bool) {
	if endpoint == "" {
		return byDefault, false
	}
	if rest, ok := strings.CutPrefix(endpoint, "https://"); ok {
		return rest, true
	}
	return strings.TrimPrefix(endpoint, "http://"), false
}
