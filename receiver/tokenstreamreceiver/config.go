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

	"github.com/tokenpulse/tokenpulse/internal/assembly"
)

// Protocols are the ways in. As in the otlp receiver, naming one without the
// other turns the other off.
type Protocols struct {
	HTTP configoptional.Optional[confighttp.ServerConfig] `mapstructure:"http"`
	GRPC configoptional.Optional[configgrpc.ServerConfig] `mapstructure:"grpc"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Config is the configuration of the token_stream receiver.
type Config struct {
	Protocols Protocols `mapstructure:"protocols"`

	// IdleTimeout is how long a stream stays open without an event before it is
	// emitted as incomplete, and how long a live body may stay silent.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// MaxStreams bounds the streams that are open at a time. When it is reached,
	// new ones are refused and no open one is touched.
	MaxStreams int `mapstructure:"max_streams"`

	// MaxChunksPerStream bounds the chunks of one stream. Later ones are dropped.
	MaxChunksPerStream int `mapstructure:"max_chunks_per_stream"`

	// MaxEventBytes bounds a line of NDJSON, and a stream's id, attributes and
	// resource together.
	MaxEventBytes int `mapstructure:"max_event_bytes"`

	// MaxMemoryMiB bounds what all open streams together hold.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

// Unmarshal reads the protocols. The defaults have both, so that a receiver
// without settings takes everything.
func (p *Protocols) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(p); err != nil {
		return err
	}
	named := conf.ToStringMap()
	if len(named) == 0 {
		return nil
	}
	if _, ok := named["http"]; !ok {
		p.HTTP = configoptional.None[confighttp.ServerConfig]()
	}
	if _, ok := named["grpc"]; !ok {
		p.GRPC = configoptional.None[configgrpc.ServerConfig]()
	}
	return nil
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	var errs []error
	if !c.Protocols.HTTP.HasValue() && !c.Protocols.GRPC.HasValue() {
		errs = append(errs, errors.New("protocols: at least one of http and grpc must be enabled"))
	}
	if http := c.Protocols.HTTP.Get(); http != nil && slices.Contains(http.CompressionAlgorithms, "snappy") {
		errs = append(errs, errors.New("protocols::http::compression_algorithms: snappy bodies cannot be read as they come; use x-snappy-framed, gzip or zstd"))
	}
	// A number without a unit counts as nanoseconds.
	if c.IdleTimeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("idle_timeout: must be at least 1ms and have its unit, such as 60s; is %s", c.IdleTimeout))
	}
	for _, limit := range []struct {
		key          string
		value, least int
	}{
		{"max_streams", c.MaxStreams, 1},
		{"max_chunks_per_stream", c.MaxChunksPerStream, 1},
		{"max_event_bytes", c.MaxEventBytes, 1024},
		{"max_memory_mib", c.MaxMemoryMiB, 1},
	} {
		if limit.value < limit.least {
			errs = append(errs, fmt.Errorf("%s: must be at least %d, is %d", limit.key, limit.least, limit.value))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) limits() assembly.Limits {
	return assembly.Limits{
		MaxStreams:         c.MaxStreams,
		MaxChunksPerStream: c.MaxChunksPerStream,
		MaxStreamBytes:     c.MaxEventBytes,
		MaxMemory:          int64(c.MaxMemoryMiB) << 20,
	}
}
