// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// description is an OpenAPI 3.1 document, whose schemas are JSON Schema 2020-12.
type description struct {
	content  map[string]any
	compiler *jsonschema.Compiler
}

const descriptionURL = "openapi.json"

func parseDescription(t *testing.T, content []byte) *description {
	t.Helper()
	d := &description{compiler: jsonschema.NewCompiler()}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, yaml.Unmarshal(content, &d.content))
	require.Equal(t, "3.1.0", d.content["openapi"])
	encoded, err := json.Marshal(d.content)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	require.NoError(t, err)
	require.NoError(t, d.compiler.AddResource(descriptionURL, document))
	return d
}

// at returns what is at a path of keys, and follows references.
func (d *description) at(t *testing.T, keys ...string) any {
	t.Helper()
	var v any = d.content
	for _, key := range keys {
		object, ok := v.(map[string]any)
		require.True(t, ok, "no %q in %v", key, keys)
		v = object[key]
		if object, ok := v.(map[string]any); ok && object["$ref"] != nil {
			v = d.at(t, strings.Split(strings.TrimPrefix(object["$ref"].(string), "#/"), "/")...)
		}
	}
	require.NotNil(t, v, "%v", keys)
	return v
}

// endpoints returns the path of each endpoint.
func (d *description) endpoints(t *testing.T) (all []string) {
	t.Helper()
	for path := range d.at(t, "paths").(map[string]any) {
		all = append(all, path)
	}
	return all
}

// parameters returns the names of an endpoint's query parameters.
func (d *description) parameters(t *testing.T, path string) (names []string) {
	t.Helper()
	operation := d.at(t, "paths", path, "get").(map[string]any)
	list, _ := operation["parameters"].([]any)
	for _, p := range list {
		parameter := p.(map[string]any)
		if ref, ok := parameter["$ref"].(string); ok {
			parameter = d.at(t, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
		}
		if parameter["in"] == "query" {
			names = append(names, parameter["name"].(string))
		}
	}
	return names
}

// check validates the body of a response.
func (d *description) check(t *testing.T, path, status, contentType string, body []byte) {
	t.Helper()
	media := d.at(t, "paths", path, "get", "responses", status, "content", contentType).(map[string]any)
	if contentType != "application/json" {
		return
	}
	ref := media["schema"].(map[string]any)["$ref"].(string)
	schema, err := d.compiler.Compile(descriptionURL + ref)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value), "%s: %.2000s", path, body)
}
