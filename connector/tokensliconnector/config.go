// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// Config of the connector.
type Config struct {
	// Publish holds the settings of the series. Into logs, Temporality has no effect.
	Publish publish.Config `mapstructure:",squash"`
	// EventAttributes are copied to breach events, from the span or else its resource.
	EventAttributes []string `mapstructure:"event_attributes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal decodes the settings.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return settings.Unmarshal(conf, c) }

func createDefaultConfig() component.Config {
	return &Config{Publish: publish.NewDefaultConfig()}
}

// maxEventAttributes limits the attributes that are copied to an event.
const maxEventAttributes = 16

// Validate returns an error for each invalid key.
func (c *Config) Validate() error {
	return errors.Join(append(c.Publish.Problems(), c.validateEventAttributes()...)...)
}

func (c *Config) validateEventAttributes() (errs settings.Problems) {
	all := c.EventAttributes
	errs.Unless(len(all) <= maxEventAttributes, "`event_attributes` has %d entries; the maximum is %d", len(all), maxEventAttributes)
	for i, name := range all {
		errs.Unless(name != "", "`event_attributes` entry %d is empty; enter the name of an attribute, such as user.id", i+1)
		errs.Unless(!names.HoldText(name), "`event_attributes` has %q, which may hold text of prompts or answers, which events never carry; remove it", name)
		errs.Unless(!strings.HasPrefix(name, names.Prefix), "`event_attributes` has %q, but events have the attributes of tokenpulse already; remove it", name)
		errs.Unless(!slices.Contains(all[:i], name), "`event_attributes` has %q twice; remove one", name)
	}
	return errs
}
