// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Config selects the metrics of the conventions to publish. The zero value publishes none.
type Config struct {
	// GenAI holds the generations whose names are published.
	GenAI []string `mapstructure:"gen_ai" use:"v1.41 or latest"`
	// Vantages are those whose requests count. Empty means all.
	Vantages []string `mapstructure:"vantages" use:"client, gateway, server or engine"`
	// Attributes narrows the attributes of the metrics. Empty means all that the conventions have.
	Attributes []string `mapstructure:"attributes" use:"the name of an attribute"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// On reports whether any metric may be published.
func (c *Config) On() bool { return len(c.GenAI) > 0 }

// Select returns the rows to publish, without the metrics that are not switched on.
func (c *Config) Select(on func(name string) bool) (all []Published) {
	chosen := Names(c.GenAI...)
	for i := range Table {
		row := Published{Metric: &Table[i]}
		for _, name := range slices.Compact(slices.Clone(row.Names[:])) {
			if slices.Contains(chosen, name) && on(name) {
				row.As = append(row.As, numbers.Metric{Name: name, Unit: row.Unit, Description: row.Description})
			}
		}
		if len(row.As) > 0 {
			all = append(all, row)
		}
	}
	return all
}

// Labels returns the attributes of the metrics, in the order of Attributes.
func (c *Config) Labels() (all []string) {
	for _, name := range Attributes {
		if len(c.Attributes) == 0 || slices.Contains(c.Attributes, name) {
			all = append(all, name)
		}
	}
	return all
}

// AttributesRead returns the attributes to read of a request: Labels, then the error type, and whether the call
// asked for a stream. It is empty if no metric is published.
func (c *Config) AttributesRead() []string {
	if !c.On() {
		return nil
	}
	return append(c.Labels(), names.ErrorType, names.GenAIRequestStream)
}

// Clean clears the port among the values of attributes if the address is unknown: a port alone means nothing.
func Clean(attributes, values []string) {
	address, port := slices.Index(attributes, names.ServerAddress), slices.Index(attributes, names.ServerPort)
	if port >= 0 && values[address] == "" {
		values[port] = ""
	}
}

// Counts reports whether requests that were seen from a vantage count, and for the metrics of which side.
func (c *Config) Counts(vantage string) (side Side, ok bool) {
	if len(c.Vantages) > 0 && !slices.Contains(c.Vantages, vantage) {
		return 0, false
	}
	switch v, _ := timeline.ParseVantage(vantage); v {
	case timeline.VantageClient, timeline.VantageGateway:
		return Client, true
	case timeline.VantageServer, timeline.VantageEngine:
		return Server, true
	default:
		return 0, false
	}
}

// Problems returns an error for each invalid key.
func (c *Config) Problems() (errs settings.Problems) {
	valid := func(key string, values, known []string) {
		for _, v := range values {
			errs.Unless(slices.Contains(known, v), "`conventions::%s` has %q; valid values: %s", key, v, strings.Join(known, ", "))
		}
	}
	valid("gen_ai", c.GenAI, GenerationNames[:])
	valid("vantages", c.Vantages, vantages)
	valid("attributes", c.Attributes, Attributes)
	errs.Unless(c.On() || len(c.Vantages)+len(c.Attributes) == 0, "`conventions` has no `gen_ai`, so it publishes nothing; add `gen_ai: latest`, or remove `conventions`")
	errs.Unless(!slices.Contains(c.Attributes, names.ServerPort) || slices.Contains(c.Attributes, names.ServerAddress),
		"`conventions::attributes` has %q without %q; add that, or remove the port", names.ServerPort, names.ServerAddress)
	return errs
}

var vantages = []string{
	timeline.VantageClient.String(), timeline.VantageGateway.String(), timeline.VantageServer.String(), timeline.VantageEngine.String(),
}
