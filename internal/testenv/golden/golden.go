// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden reads spans of golden files, and compares spans with them.
package golden

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// ReadTraces reads a file with OTLP JSON that is written as YAML.
func ReadTraces(tb testing.TB, file string) ptrace.Traces {
	tb.Helper()
	read, err := confmaptest.LoadConf(file)
	require.NoError(tb, err)
	encoded, err := json.Marshal(read.ToStringMap())
	require.NoError(tb, err)
	traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(encoded)
	require.NoError(tb, err, file)
	require.Positive(tb, traces.SpanCount(), "%s has no span", file)
	return traces
}

// RequireEqual fails if the traces differ in more than the order of attributes.
func RequireEqual(tb testing.TB, expected, actual ptrace.Traces, why string) {
	tb.Helper()
	require.Equal(tb, text(tb, expected), text(tb, actual), why)
}

// text returns traces as JSON with attributes by key.
func text(tb testing.TB, traces ptrace.Traces) string {
	tb.Helper()
	encoded, err := new(ptrace.JSONMarshaler).MarshalTraces(traces)
	require.NoError(tb, err)
	var all any
	require.NoError(tb, json.Unmarshal(encoded, &all))
	indented, err := json.MarshalIndent(withAttributesByKey(all), "", "  ")
	require.NoError(tb, err)
	return string(indented)
}

// withAttributesByKey replaces lists of attributes by objects, whose members are written in the order of their names.
func withAttributesByKey(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withAttributesByKey(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if list, ok := member.([]any); ok && name == "attributes" {
				v[name] = byKey(list)
				continue
			}
			v[name] = withAttributesByKey(member)
		}
	}
	return v
}

func byKey(attributes []any) map[string]any {
	all := map[string]any{}
	for _, attribute := range attributes {
		pair, _ := attribute.(map[string]any)
		key, _ := pair["key"].(string)
		for all[key] != nil {
			key += " again"
		}
		all[key] = pair["value"]
	}
	return all
}
