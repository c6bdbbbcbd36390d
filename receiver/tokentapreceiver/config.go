// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config is the configuration of the token_tap receiver.
type Config struct {
	Server confighttp.ServerConfig `mapstructure:",squash"`

	// Upstream serves the requests that no route takes. Without an endpoint, they are
	// answered with 404.
	Upstream confighttp.ClientConfig `mapstructure:"upstream"`

	// Routes select an upstream by the beginning of the path.
	Routes []RouteConfig `mapstructure:"routes"`

	// AllowedHosts are further values of the header Host of requests to a loopback address.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// ServiceName is the service.name of exchanges to which AttributesFromHeaders gives none.
	ServiceName string `mapstructure:"service_name"`

	// AttributesFromHeaders maps request headers to span attributes.
	AttributesFromHeaders map[string]string `mapstructure:"attributes_from_headers"`

	// Propagate makes the span of the exchange the parent of the upstream's spans.
	// Otherwise the client's trace context passes unchanged.
	Propagate bool `mapstructure:"propagate"`

	// MaxStreams limits the exchanges that are observed at a time. Further ones are
	// forwarded without a span.
	MaxStreams int `mapstructure:"max_streams"`

	// MaxChunksPerStream limits the chunks in the timeline of an exchange.
	MaxChunksPerStream int `mapstructure:"max_chunks_per_stream"`

	// MaxEventBytes limits the size of an event that is parsed. Longer ones are skipped.
	MaxEventBytes int `mapstructure:"max_event_bytes"`

	// MaxMemoryMiB limits what is held for all exchanges together: copies of requests, events
	// that have not ended, timelines, and the windows of decompression.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`

	// MaxStreamDuration limits how long an exchange is observed. It is forwarded to its end.
	MaxStreamDuration time.Duration `mapstructure:"max_stream_duration"`

	// MaxQueuedSpans limits the spans that wait for the pipeline. Further ones are dropped.
	MaxQueuedSpans int `mapstructure:"max_queued_spans"`

	// Liveness judges whether upstreams produce tokens. Without it, none is judged.
	Liveness configoptional.Optional[LivenessConfig] `mapstructure:"liveness"`

	// StorageID is the extension that keeps what was learned about upstreams across restarts. Without it, that is learned
	// again.
	StorageID *component.ID `mapstructure:"storage"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RouteConfig is an upstream for the paths that begin with a prefix.
type RouteConfig struct {
	// Prefix consists of whole segments of the path. It is removed from the path.
	Prefix string `mapstructure:"prefix"`

	Upstream confighttp.ClientConfig `mapstructure:"upstream"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

// Unmarshal decodes the settings.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

// Unmarshal reads a route over the defaults of an upstream.
func (r *RouteConfig) Unmarshal(conf *confmap.Conf) error {
	r.Upstream = defaultUpstream()
	return conf.Unmarshal(r)
}

// maxIdleConnections replaces the two per host of net/http, with which a proxy would open
// nearly a connection per request.
const maxIdleConnections = 1024

func defaultUpstream() confighttp.ClientConfig {
	upstream := confighttp.NewDefaultClientConfig()
	upstream.MaxIdleConns, upstream.MaxIdleConnsPerHost = 0, maxIdleConnections
	return upstream
}

// Validate checks the configuration.
func (c *Config) Validate() error {
	var errs settings.Problems
	errs.Unless(c.Server.WriteTimeout == 0, "`write_timeout` would cut answers; remove it")
	errs.Unless(len(c.Server.CompressionAlgorithms) == 0, "`compression_algorithms` would change requests; remove it")
	errs.Unless(c.Upstream.Endpoint != "" || len(c.Routes) > 0, "`upstream::endpoint` is missing; set it, or add `routes`")
	if c.Upstream.Endpoint != "" {
		checkUpstream(&errs, "upstream", &c.Upstream, c.Server.NetAddr.Endpoint)
	}
	for i, route := range c.Routes {
		errs.Unless(strings.HasPrefix(route.Prefix, "/") && len(route.Prefix) > 1 && !strings.HasSuffix(route.Prefix, "/"),
			"`routes::%d::prefix` is %q; use one or more path segments, with a slash before each and none at the end, such as /openai", i, route.Prefix)
		same := func(other RouteConfig) bool { return other.Prefix == route.Prefix }
		errs.Unless(slices.IndexFunc(c.Routes, same) == i, "`routes::%d::prefix` is %q, the prefix of another route; remove one", i, route.Prefix)
		checkUpstream(&errs, fmt.Sprintf("routes::%d::upstream", i), &c.Routes[i].Upstream, c.Server.NetAddr.Endpoint)
	}
	errs.Unless(c.ServiceName != "", "`service_name` is empty; name the service of exchanges without one, or remove the key")
	for header, attribute := range c.AttributesFromHeaders {
		errs.Unless(!isCredentialHeader(header),
			"`attributes_from_headers` has %q, which may carry a credential, by its name; use a header that names the caller, such as x-tenant-id", header)
		errs.Unless(attribute != "" && !strings.HasPrefix(attribute, names.Prefix),
			"`attributes_from_headers::%s` is %q; use the name of an attribute that does not begin with %s", header, attribute, names.Prefix)
	}
	for _, limit := range []struct {
		key            string
		value, minimum int
	}{
		{"max_streams", c.MaxStreams, 1},
		{"max_chunks_per_stream", c.MaxChunksPerStream, 1},
		{"max_event_bytes", c.MaxEventBytes, 1024},
		{"max_memory_mib", c.MaxMemoryMiB, 1},
		{"max_queued_spans", c.MaxQueuedSpans, 1},
	} {
		errs.Unless(limit.value >= limit.minimum, "`%s` is %d; use at least %d", limit.key, limit.value, limit.minimum)
	}
	// YAML numbers without a unit are nanoseconds.
	errs.Unless(c.MaxStreamDuration >= time.Millisecond,
		"`max_stream_duration` is %s; use at least 1ms, with a unit, such as 1h", c.MaxStreamDuration)
	liveness := c.Liveness.Get()
	if liveness != nil {
		liveness.check(&errs, c.Server.NetAddr.Endpoint)
	}
	errs.Unless(liveness != nil || c.StorageID == nil, "`storage` keeps nothing without `liveness`; add that, or remove `storage`")
	return errors.Join(errs...)
}

// checkUpstream reports an endpoint that cannot be forwarded to, and settings that would
// change or cut what passes. own is the endpoint of the receiver.
func checkUpstream(errs *settings.Problems, key string, upstream *confighttp.ClientConfig, own string) {
	endpoint, err := url.Parse(upstream.Endpoint)
	valid := err == nil && (endpoint.Scheme == "http" || endpoint.Scheme == "https") && endpoint.Host != ""
	// The endpoint is not repeated: it may hold a password.
	errs.Unless(valid, "`%s::endpoint` is not a valid URL; use one such as https://api.openai.com", key)
	if valid {
		errs.Unless(endpoint.User == nil, "`%s::endpoint` has a user or password; set `headers` or `auth` instead", key)
		errs.Unless(endpoint.RawQuery == "" && endpoint.Fragment == "", "`%s::endpoint` has a query or fragment; remove it", key)
		errs.Unless(!isOwn(own, endpoint), "`%s::endpoint` is the address of this receiver, so each request would be forwarded without end; use the address of the service", key)
	}
	errs.Unless(!upstream.Compression.IsCompressed(), "`%s::compression` would change requests; remove it", key)
	errs.Unless(upstream.Timeout == 0, "`%s::timeout` would cut answers; remove it", key)
	errs.Unless(!upstream.Cookies.HasValue(), "`%s::cookies` would mix the cookies of all clients; remove it", key)
}

// isOwn reports whether an upstream is the receiver itself, as far as their addresses show.
func isOwn(own string, upstream *url.URL) bool {
	host, port, err := net.SplitHostPort(own)
	if err != nil || port != cmp.Or(upstream.Port(), map[string]string{"http": "80", "https": "443"}[upstream.Scheme]) {
		return false
	}
	other := upstream.Hostname()
	switch {
	case host == "" || net.ParseIP(host).IsUnspecified(), host == "localhost", other == "localhost":
		return isLocal(host) && isLocal(other)
	default:
		return strings.EqualFold(host, other)
	}
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip.IsLoopback() || ip.IsUnspecified()
}
