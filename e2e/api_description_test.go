// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// description is the OpenAPI document of the API.
type description struct{ document *openapi3.T }

// parseDescription checks that the document is valid OpenAPI 3.1.
func parseDescription(t *testing.T, content []byte) *description {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(content)
	require.NoError(t, err)
	require.Equal(t, "3.1.0", document.OpenAPI)
	require.NoError(t, document.Validate(t.Context()))
	return &description{document}
}

// endpoints returns the path of each endpoint to GET.
func (d *description) endpoints() []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(d.document.Paths.Map())), func(path string) bool { return d.document.Paths.Value(path).Get == nil })
}

func (d *description) operation(t *testing.T, path string) *openapi3.Operation {
	t.Helper()
	item := d.document.Paths.Value(path)
	require.NotNil(t, item, path)
	if item.Get == nil {
		return item.Post
	}
	return item.Get
}

// parameters returns the names of an endpoint's query parameters.
func (d *description) parameters(t *testing.T, path string) (names []string) {
	t.Helper()
	for _, p := range d.operation(t, path).Parameters {
		if p.Value.In == openapi3.ParameterInQuery {
			names = append(names, p.Value.Name)
		}
	}
	return names
}

// check validates the body of a response.
func (d *description) check(t *testing.T, path, status, contentType string, body []byte) {
	t.Helper()
	response := d.operation(t, path).Responses.Value(status)
	require.NotNil(t, response, "%s %s", path, status)
	media := response.Value.Content[contentType]
	require.NotNil(t, media, "%s %s", path, contentType)
	if contentType != "application/json" {
		return
	}
	var value any
	require.NoError(t, json.Unmarshal(body, &value))
	require.NoError(t, d.document.ValidateSchemaJSON(media.Schema.Value, value), "%s: %.2000s", path, body)
}
