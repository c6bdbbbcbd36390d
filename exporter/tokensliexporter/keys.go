package tokensliexporter

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal turns away keys that mean nothing. The Collector does so itself but
// for configurations with an HTTP server's keys among their own: a `max_serise`
// would be ignored.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	known := keysOf(reflect.TypeFor[Config]())
	for _, key := range slices.Sorted(maps.Keys(conf.ToStringMap())) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("`%s` is no key of token_sli: these are %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// keysOf returns the keys of a configuration, in their order.
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
