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
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
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

	// ServiceName is the service.name of streams whose resource has none.
	ServiceName string `mapstructure:"service_name"`

	// IdleTimeout is how long a stream stays open without an event before it is emitted
	// as incomplete, and how long a request body may pause.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// FirstTokenTimeout replaces IdleTimeout for a stream that waits for its first chunk.
	// Without the key, it is at least IdleTimeout.
	FirstTokenTimeout time.Duration `mapstructure:"first_token_timeout"`

	// MaxStreams limits the open streams. At the limit, requests with new streams are
	// refused; open streams are never evicted.
	MaxStreams int `mapstructure:"max_streams"`

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

	// MaxSharePerClient is the fraction of MaxStreams, of MaxLiveRequests and of the series' MaxSeries that one
	// client may hold while less than half of the limit is free.
	MaxSharePerClient float64 `mapstructure:"max_share_per_client"`

	// StorageID is the extension that keeps open streams across restarts. Without it they
	// are lost.
	StorageID *component.ID `mapstructure:"storage"`

	// Latency has the settings of the token_latency processor that apply to a request by
	// itself. Without it, a metrics pipeline uses the processor's defaults.
	Latency configoptional.Optional[annotate.Config] `mapstructure:"latency"`

	// Series configures the series that a metrics pipeline gets.
	Series configoptional.Optional[publish.Config] `mapstructure:"series"`

	// Spans selects the streams that become spans, of a receiver in a metrics pipeline.
	Spans SpansConfig `mapstructure:"spans"`

	// Liveness judges whether engines produce tokens, each by the service.instance.id of its streams.
	Liveness configoptional.Optional[engines.Config] `mapstructure:"liveness"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

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
	if err := settings.Unmarshal(conf, c); err != nil {
		return err
	}
	if !conf.IsSet("first_token_timeout") {
		c.FirstTokenTimeout = max(c.FirstTokenTimeout, c.IdleTimeout)
	}
	return nil
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	var errs settings.Problems
	errs.Unless(c.ServiceName != "", "`service_name` is empty; name the service of streams without one, or remove the key")
	errs.Unless(c.Protocols.HTTP.HasValue() || c.Protocols.GRPC.HasValue(), "`protocols` has neither http nor grpc enabled; enable at least one")
	if http := c.Protocols.HTTP.Get(); http != nil {
		for _, algorithm := range http.CompressionAlgorithms {
			errs.Unless(slices.Contains(compressionAlgorithms, algorithm),
				"`protocols::http::compression_algorithms` has %q, which is decompressed outside of `max_memory_mib`; use gzip, zstd, zlib or deflate", algorithm)
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
		errs.Unless(timeout.value >= time.Millisecond, "`%s` is %s; use at least 1ms, with a unit, such as %s", timeout.key, timeout.value, timeout.example)
	}
	for _, limit := range []struct {
		key            string
		value, minimum int
	}{
		{"max_streams", c.MaxStreams, 1},
		{"max_chunks_per_stream", c.MaxChunksPerStream, 1},
		{"max_event_bytes", c.MaxEventBytes, 1024},
		{"max_memory_mib", c.MaxMemoryMiB, 1},
		{"max_live_requests", c.MaxLiveRequests, 1},
	} {
		errs.Unless(limit.value >= limit.minimum, "`%s` is %d; use at least %d", limit.key, limit.value, limit.minimum)
	}
	if liveness := c.Liveness.Get(); liveness != nil {
		liveness.Check(&errs, "liveness")
	}
	return errors.Join(slices.Concat(errs, httpguard.ShareProblems(c.MaxSharePerClient), c.validateSeries())...)
}

// validateSeries reports settings of latency that need spans, settings that select no span, and invalid
// settings of the series.
func (c *Config) validateSeries() (errs settings.Problems) {
	if latency := c.Latency.Get(); latency != nil {
		for _, setting := range [...]struct {
			key string
			on  bool
		}{{"join", latency.Join}, {"roll_up", latency.RollUp}, {"phases", latency.Phases}} {
			errs.Unless(!setting.on, "`latency::%s` needs spans; remove it here, and set it in a token_latency processor of a traces pipeline", setting.key)
		}
	}
	errs.Unless(c.Spans.Share > 0 || !c.Spans.Breached || len(c.latency().SLOs) > 0,
		"`spans::share` is 0 and `latency` has no `slos` to breach, which selects no span; set `latency::slos` or a share, "+
			"or remove the receiver from its traces pipelines and `spans` from its settings")
	if series := c.Series.Get(); series != nil {
		for _, err := range series.Problems() {
			errs = append(errs, fmt.Errorf("series: %w", err))
		}
	}
	return errs
}

// checkPipelines reports settings for a metrics pipeline that the receiver is not in.
func (c *Config) checkPipelines(metrics bool) error {
	switch {
	case metrics:
	case c.Series.HasValue():
		return errors.New("`series` is set, but the receiver is in no metrics pipeline; add it to one, or remove `series`")
	case c.Spans.Share < 1:
		return fmt.Errorf("`spans::share` is %v, but the receiver is in no metrics pipeline, so that the other requests would count nowhere; "+
			"add it to a metrics pipeline, or remove `share`", c.Spans.Share)
	}
	return nil
}

// latency returns the settings of latency, or their defaults.
func (c *Config) latency() *annotate.Config {
	if latency := c.Latency.Get(); latency != nil {
		return latency
	}
	return annotate.DefaultConfig()
}

// series returns the settings of series, or their defaults.
func (c *Config) series() *publish.Config {
	if series := c.Series.Get(); series != nil {
		return series
	}
	defaults := publish.NewDefaultConfig()
	return &defaults
}

func (c *Config) limits() assembly.Limits {
	return assembly.Limits{
		MaxStreams:          c.MaxStreams,
		MaxStreamsPerClient: httpguard.ShareOf(c.MaxStreams, c.MaxSharePerClient),
		MaxChunksPerStream:  c.MaxChunksPerStream,
		MaxStreamBytes:      c.MaxEventBytes,
		MaxMemory:           int64(c.MaxMemoryMiB) << 20,
	}
}

func (c *Config) timeouts() assembly.Timeouts {
	return assembly.Timeouts{Idle: c.IdleTimeout, FirstToken: c.FirstTokenTimeout}
}
