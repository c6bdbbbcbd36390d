// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package send sends streams to a token_stream receiver, over each of its wire
// formats.
package send

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// Sender sends parts of streams, in order.
type Sender interface {
	// Send sends the parts and retries failures that may be temporary. After an
	// error, no more parts can be sent. Without an error, the receiver may still
	// have to acknowledge the parts.
	Send(ctx context.Context, parts []stream.Part) error
	// Close waits until everything is acknowledged.
	Close(ctx context.Context) error
}

// New returns the sender for a transport.
func New(config Config) (Sender, error) {
	switch config.Transport {
	case NDJSON:
		client := newHTTPClient(config)
		return &live{stats: config.Stats, open: client.openNDJSON, close: client.Close}, nil
	case JSON:
		return &messageSender{httpClient: newHTTPClient(config), contentType: contentTypeJSON, encode: protojson.Marshal}, nil
	case Protobuf:
		return &messageSender{httpClient: newHTTPClient(config), contentType: contentTypeProtobuf, encode: proto.Marshal}, nil
	case GRPC, GRPCStream:
		client, err := newGRPCClient(config)
		if err != nil {
			return nil, err
		}
		if config.Transport == GRPC {
			return client, nil
		}
		return &live{stats: config.Stats, open: client.openStream, close: client.Close}, nil
	default:
		return nil, fmt.Errorf("--transport is %q; valid values: ndjson, json, protobuf, grpc, grpc-stream", config.Transport)
	}
}
