// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// endpoints returns the path of each endpoint. All are there to GET.
func (d *description) endpoints() []string { return slices.Collect(maps.Keys(d.document.Paths.Map())) }

// operation returns that of a path to GET, or of a method and a path.
func (d *description) operation(t *testing.T, endpoint string) *openapi3.Operation {
	t.Helper()
	method, path, ok := strings.Cut(endpoint, " ")
	if !ok {
		method, path = http.MethodGet, endpoint
	}
	item := d.document.Paths.Value(path)
	require.NotNil(t, item, path)
	operation := item.GetOperation(method)
	require.NotNil(t, operation, endpoint)
	return operation
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

// check validates the body of a response, if it may have one.
func (d *description) check(t *testing.T, path, status, contentType string, body []byte) {
	t.Helper()
	response := d.operation(t, path).Responses.Value(status)
	require.NotNil(t, response, "%s %s", path, status)
	if len(response.Value.Content) == 0 {
		require.Empty(t, body)
		return
	}
	media := response.Value.Content[contentType]
	require.NotNil(t, media, "%s %s", path, contentType)
	if contentType != "application/json" {
		return
	}
	var value any
	require.NoError(t, json.Unmarshal(body, &value))
	require.NoError(t, d.document.ValidateSchemaJSON(media.Schema.Value, value), "%s: %.2000s", path, body)
}
