// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// read compares the value at a path with its type. use is the tag of the nearest field, which describes
// the entries of a list and the values of a map.
func (w *walk) read(path, use string, v reflect.Value, t reflect.Type) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	t, optional := dereferenced(t)
	switch {
	case !v.IsValid() || t.Kind() == reflect.Interface: // no value, or any
	case t.Kind() == reflect.Struct && v.Kind() == reflect.Map:
		w.readKeys(path, v, t, optional)
	case v.Kind() == reflect.Map && (t.Kind() == reflect.Map || implements[confmap.Unmarshaler](t)):
		for _, key := range sortedKeys(v) {
			w.read(join(path, key), use, v.MapIndex(reflect.ValueOf(key)), elementOf(t))
		}
	case t.Kind() == reflect.Slice && v.Kind() == reflect.Slice:
		for i := range v.Len() {
			w.read(join(path, strconv.Itoa(i)), use, v.Index(i), t.Elem())
		}
	default:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			use = ""
		}
		w.unfit.Unless(fits(v, t), "`%s` is %s; use %s", path, describe(v, t), cmp.Or(use, form(t)))
	}
}

// elementOf returns the type of a map's values. Headers are lists of names and values that the
// Collector also reads from a map.
func elementOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		for key, field := range fieldsOf(t.Elem()) {
			if key == "value" {
				return field.Type
			}
		}
	}
	return t.Elem()
}

// readKeys compares a section with its struct.
func (w *walk) readKeys(path string, section reflect.Value, config reflect.Type, optional bool) {
	fields := maps.Collect(fieldsOf(config))
	for _, key := range sortedKeys(section) {
		value := section.MapIndex(reflect.ValueOf(key))
		field, known := fields[key]
		switch {
		case known:
			w.read(join(path, key), field.Tag.Get("use"), value, field.Type)
		case optional && key == "enabled": // of every configoptional.Optional
		default:
			w.unknown = append(w.unknown, w.unknownKey(path, key, config))
		}
	}
}

func (w *walk) unknownKey(path, key string, config reflect.Type) error {
	where := ""
	if path != "" {
		where = " in `" + path + "`"
	}
	hint := ""
	if elsewhere := w.elsewhere(path, key); elsewhere != "" {
		hint = " use `" + elsewhere + "`;"
	}
	return fmt.Errorf("unknown key %q%s;%s valid keys: %s", key, where, hint, strings.Join(keysOf(config), ", "))
}

// elsewhere returns the path of the key that an unknown one may stand for: a misplaced one of that name, or one
// that ends in the same two words.
func (w *walk) elsewhere(path, key string) string {
	if path == "" {
		if found := pathTo(func(name string) bool { return name == key }, w.root); found != "" {
			return found
		}
	}
	end := endOf(key)
	return pathTo(func(name string) bool { return end != "" && endOf(name) == end }, w.root)
}

func sortedKeys(m reflect.Value) (keys []string) {
	for _, key := range m.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	return keys
}

// fits reports whether the Collector decodes a value into a type.
func fits(v reflect.Value, t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		_, err := time.ParseDuration(v.String())
		return v.CanInt() || v.CanFloat() || err == nil
	case implements[encoding.TextUnmarshaler](t):
		return v.Kind() == reflect.String
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool:
		return v.Kind() == t.Kind()
	case reflect.Slice:
		return t.Elem().Kind() == reflect.String && v.Kind() == reflect.String // separated by commas
	case reflect.Struct, reflect.Map:
		return false
	default:
		return v.CanInt() || v.CanUint() || v.CanFloat()
	}
}

// form says what a value of a type looks like.
func form(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 30s"
	case implements[encoding.TextUnmarshaler](t):
		return "text"
	}
	switch t.Kind() {
	case reflect.String:
		return "text, in quotes if it looks like something else"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list, in brackets"
	case reflect.Struct:
		return "a section with the keys " + strings.Join(keysOf(t), ", ")
	case reflect.Map:
		return "keys with a value each"
	default:
		return "a number"
	}
}

// describe returns a value as the user wrote it, unless it may be a secret.
func describe(v reflect.Value, t reflect.Type) string {
	switch {
	case v.Kind() == reflect.Map:
		return "a section with keys"
	case v.Kind() == reflect.Slice:
		return "a list"
	case strings.HasSuffix(t.PkgPath(), "/configopaque"):
		return "not text"
	case v.Kind() == reflect.String:
		return strconv.Quote(v.String())
	default:
		return fmt.Sprint(v)
	}
}

func implements[T any](t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[T]())
}
