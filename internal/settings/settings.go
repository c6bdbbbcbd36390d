// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package settings decodes the configuration of a component, and collects its errors. They name the key as
// the user wrote it, and what to write instead; those of the Collector name Go types.
//
// It walks the settings beside the structs of the configuration, the Collector's own included, before the
// Collector decodes them. So it rejects unknown keys at every level, also where the Collector ignores them:
// beside and below the keys of an HTTP server. The tag `use` of a field says which values it takes.
package settings

import (
	"errors"
	"reflect"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal decodes into the configuration of a component, a pointer to a struct. It rejects unknown
// keys at every level: the Collector ignores them in structs that squash an HTTP server's keys. The
// tag `use` of a field says which values it takes.
func Unmarshal(conf *confmap.Conf, config any) error {
	w := walk{root: reflect.TypeOf(config).Elem()}
	w.read("", "", reflect.ValueOf(conf.ToStringMap()), w.root)
	if len(w.unknown) > 0 {
		return errors.Join(append(w.unknown, w.unfit...)...)
	}
	err := conf.Unmarshal(config)
	if err != nil && len(w.unfit) > 0 {
		return errors.Join(w.unfit...)
	}
	return err
}

// walk compares settings with the types of a configuration.
type walk struct {
	root    reflect.Type
	unknown Problems // keys
	unfit   Problems // values that do not fit; the Collector may convert some of them all the same
}
