// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/assembly"
)

// Protocols configures the servers. As in the otlp receiver, a section with one protocol
// turns the other one off.
type Protocols struct {
	HTTP configoptional.Optional[confighttp.ServerConfig] `mapstructure:"http"`
	GRPC configoptional.Optional[configgrpc.ServerConfig] `mapstructure:"grpc"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Config is the configuration of the token_stream receiver.
type Config struct {
	Protocols Protocols `mapstructure:"protocols"`

	// IdleTimeout is how long a stream stays open without an event before it is emitted
	// as incomplete, and how long a request body may pause.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// FirstTokenTimeout replaces IdleTimeout for a stream that waits for its first chunk.
	// Without the key, it is at least IdleTimeout.
	FirstTokenTimeout time.Duration `mapstructure:"first_token_timeout"`

	// MaxStreams limits the open streams. At the limit, requests with new streams are
	// refused; open streams are never evicted.
	MaxStreams int `mapstructure:"max_streams"`

	// MaxStreamsPerClient limits the open streams of one client while less than half of
	// MaxStreams is free. 0 means a tenth of MaxStreams.
	MaxStreamsPerClient int `mapstructure:"max_streams_per_client"`

	// MaxChunksPerStream limits the chunks of one stream. Later chunks are dropped.
	MaxChunksPerStream int `mapstructure:"max_chunks_per_stream"`

	// MaxEventBytes limits a line of NDJSON, and the ID, attributes and resource of a
	// stream together.
	MaxEventBytes int `mapstructure:"max_event_bytes"`

	// MaxMemoryMiB limits the memory of all open streams and requests in progress
	// together. The default is a quarter of the memory limit of the container or of
	// GOMEMLIMIT.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`

	// MaxLiveRequests limits the requests that may stay open for hours: NDJSON bodies
	// without a Content-Length, and calls of the gRPC method Stream.
	MaxLiveRequests int `mapstructure:"max_live_requests"`

	// StorageID is the extension that keeps open streams across restarts. Without it they
	// are lost.
	StorageID *component.ID `mapstructure:"storage"`

	// Latency has the settings of token_latency. With it, spans leave annotated, as if
	// they had passed that processor.
	Latency configoptional.Optional[annotate.Config] `mapstructure:"latency"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

// defaultMaxBodySize equals the default of confighttp.
const defaultMaxBodySize = 20 << 20

// defaultMaxMessageSize equals the default of gRPC.
const defaultMaxMessageSize = 4 << 20

// compressionAlgorithms are those whose decoders count toward max_memory_mib.
var compressionAlgorithms = []string{"", "gzip", "zstd", "zlib", "deflate"}

// Unmarshal reads the section protocols. Without it both protocols keep their defaults.
func (p *Protocols) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(p); err != nil {
		return err
	}
	configured := conf.ToStringMap()
	if len(configured) == 0 {
		return nil
	}
	if _, ok := configured["http"]; !ok {
		p.HTTP = configoptional.None[confighttp.ServerConfig]()
	}
	if _, ok := configured["grpc"]; !ok {
		p.GRPC = configoptional.None[configgrpc.ServerConfig]()
	}
	return nil
}

// Unmarshal reads the settings. The default of first_token_timeout depends on
// idle_timeout: a stream without chunks must not expire earlier than others by default.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	if !conf.IsSet("first_token_timeout") {
		c.FirstTokenTimeout = max(c.FirstTokenTimeout, c.IdleTimeout)
	}
	return nil
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	var errs []error
	if !c.Protocols.HTTP.HasValue() && !c.Protocols.GRPC.HasValue() {
		errs = append(errs, errors.New("protocols: at least one of http and grpc must be enabled"))
	}
	if http := c.Protocols.HTTP.Get(); http != nil {
		for _, algorithm := range http.CompressionAlgorithms {
			if !slices.Contains(compressionAlgorithms, algorithm) {
				errs = append(errs, fmt.Errorf("protocols::http::compression_algorithms: %q is decompressed outside of max_memory_mib; use gzip, zstd, zlib or deflate", algorithm))
			}
		}
	}
	// YAML numbers without a unit are nanoseconds.
	for _, timeout := range []struct {
		key     string
		value   time.Duration
		example string
	}{
		{"idle_timeout", c.IdleTimeout, "60s"},
		{"first_token_timeout", c.FirstTokenTimeout, "10m"},
	} {
		if timeout.value < time.Millisecond {
			errs = append(errs, fmt.Errorf("%s: must be at least 1ms and have a unit, such as %s; is %s", timeout.key, timeout.example, timeout.value))
		}
	}
	for _, limit := range []struct {
		key            string
		value, minimum int
	}{
		{"max_streams", c.MaxStreams, 1},
		{"max_streams_per_client", c.MaxStreamsPerClient, 0},
		{"max_chunks_per_stream", c.MaxChunksPerStream, 1},
		{"max_event_bytes", c.MaxEventBytes, 1024},
		{"max_memory_mib", c.MaxMemoryMiB, 1},
		{settingMaxLiveRequests, c.MaxLiveRequests, 1},
	} {
		if limit.value < limit.minimum {
			errs = append(errs, fmt.Errorf("%s: must be at least %d, is %d", limit.key, limit.minimum, limit.value))
		}
	}
	return errors.Join(append(errs, c.validateLatency())...)
}

// validateLatency reports the settings that need other spans than those of the receiver.
func (c *Config) validateLatency() error {
	latency := c.Latency.Get()
	if latency == nil {
		return nil
	}
	var errs []error
	for _, setting := range []struct {
		key string
		on  bool
	}{{"join", latency.Join}, {"roll_up", latency.RollUp}, {"phases", latency.Phases}} {
		if setting.on {
			errs = append(errs, fmt.Errorf("latency::%s: works on the spans of whole traces, which a receiver does not have; remove it here, and set it in a token_latency processor behind the receiver", setting.key))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) limits() assembly.Limits {
	perClient := c.MaxStreamsPerClient
	if perClient == 0 {
		perClient = max(1, c.MaxStreams/10)
	}
	return assembly.Limits{
		MaxStreams:          c.MaxStreams,
		MaxStreamsPerClient: perClient,
		MaxChunksPerStream:  c.MaxChunksPerStream,
		MaxStreamBytes:      c.MaxEventBytes,
		MaxMemory:           int64(c.MaxMemoryMiB) << 20,
	}
}

func (c *Config) timeouts() assembly.Timeouts {
	return assembly.Timeouts{Idle: c.IdleTimeout, FirstToken: c.FirstTokenTimeout}
}
