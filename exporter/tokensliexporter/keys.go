// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal rejects unknown keys. The Collector ignores them in configurations that
// squash an HTTP server's keys, so that a misspelled `max_serise` would go unnoticed.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	if conf.IsSet("quantiles") {
		return errors.New("`quantiles` is now `percentiles`, in hundredths; replace `quantiles: [0.5, 0.99]` by `percentiles: [50, 99]`; " +
			"the gauges' names end in `percentile` instead of `quantile`, and so does their label")
	}
	known := keysOf(reflect.TypeFor[Config]())
	for _, key := range slices.Sorted(maps.Keys(conf.ToStringMap())) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown key %q; valid keys: %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// keysOf returns the keys of a configuration in the order of its fields.
func keysOf(config reflect.Type) (keys []string) {
	for field := range config.Fields() {
		key, options, _ := strings.Cut(field.Tag.Get(confmap.MapstructureTag), ",")
		switch {
		case strings.Contains(options, "squash"):
			keys = append(keys, keysOf(field.Type)...)
		case key != "":
			keys = append(keys, key)
		}
	}
	return keys
}
