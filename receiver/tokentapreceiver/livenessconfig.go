// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"net"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// LivenessConfig says how upstreams are judged, and where machines can ask for the verdicts.
type LivenessConfig struct {
	// Server answers whether an engine is ready.
	Server confighttp.ServerConfig `mapstructure:",squash"`

	Engines engines.Config `mapstructure:",squash"`

	// MaxEjected is the share of the engines, rounded down, that are not ready at a time. A single engine has no limit.
	MaxEjected float64 `mapstructure:"max_ejected"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultLiveness() LivenessConfig {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:4322"
	return LivenessConfig{Server: server, Engines: engines.DefaultConfig(), MaxEjected: 0.5}
}

// check reports settings that cannot be used. own is the endpoint of the receiver.
func (c *LivenessConfig) check(errs *settings.Problems, own string) {
	c.Engines.Check(errs, "liveness")
	errs.Unless(c.MaxEjected >= 0 && c.MaxEjected <= 1, "`liveness::max_ejected` is %v; use a number from 0 to 1", c.MaxEjected) // not NaN
	_, port, _ := net.SplitHostPort(own)
	errs.Unless(c.Server.NetAddr.Endpoint != own || port == "0", "`liveness::endpoint` is %q, that of the receiver; use another port", own)
}
