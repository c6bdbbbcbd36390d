// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"iter"
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// fieldsOf returns the fields of a configuration by key, in their order.
func fieldsOf(config reflect.Type) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for i := range config.NumField() {
			field := config.Field(i)
			key, options, _ := strings.Cut(field.Tag.Get(confmap.MapstructureTag), ",")
			if strings.Contains(options, "squash") {
				for key, inner := range fieldsOf(field.Type) {
					if !yield(key, inner) {
						return
					}
				}
			} else if key != "" && key != "-" && !yield(key, field) {
				return
			}
		}
	}
}

// Keys returns the keys at the top level of a configuration, a pointer to a struct, in their order.
func Keys(config any) []string { return keysOf(reflect.TypeOf(config).Elem()) }

func keysOf(config reflect.Type) (keys []string) {
	for key := range fieldsOf(config) {
		keys = append(keys, key)
	}
	return keys
}

// dereferenced returns the type behind pointers and configoptional.Optional.
func dereferenced(t reflect.Type) (inner reflect.Type, optional bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasSuffix(t.PkgPath(), "/configoptional") {
		get, _ := reflect.PointerTo(t).MethodByName("Get")
		return get.Type.Out(0).Elem(), true
	}
	return t, false
}

// pathTo returns the path of a key in a configuration, outside of lists, or "". The closest to the
// root counts.
func pathTo(matches func(key string) bool, config reflect.Type) string {
	type section struct {
		path   string
		config reflect.Type
	}
	for sections := []section{{"", config}}; len(sections) > 0; sections = sections[1:] {
		for name, field := range fieldsOf(sections[0].config) {
			path := join(sections[0].path, name)
			if matches(name) {
				return path
			}
			if t, _ := dereferenced(field.Type); t.Kind() == reflect.Struct {
				sections = append(sections, section{path, t})
			}
		}
	}
	return ""
}

// endOf returns the last two words of a key of at least three, which say what it limits, or "".
func endOf(key string) string {
	words := strings.Split(key, "_")
	if len(words) < 3 {
		return ""
	}
	return strings.Join(words[len(words)-2:], "_")
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + confmap.KeyDelimiter + key
}
