// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Trace backends group spans by the service of their resource, and have an odd name of their own for none.
func TestService_OfExchange(t *testing.T) {
	for name, c := range map[string]struct {
		setting  string
		headers  []string
		expected map[string]int // spans
	}{
		"without a name":          {"", []string{""}, map[string]int{"unknown_service": 1}},
		"from the setting":        {"chat-gateway", []string{""}, map[string]int{"chat-gateway": 1}},
		"from a header":           {"chat-gateway", []string{"shop"}, map[string]int{"shop": 1}},
		"several in one delivery": {"", []string{"shop", "", "search", "shop"}, map[string]int{"shop": 2, "search": 1, "unknown_service": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, answerChat, func(cfg *Config) {
				if c.setting != "" {
					cfg.ServiceName = c.setting
				}
				cfg.AttributesFromHeaders = map[string]string{"x-service": "service.name"}
			})
			for _, service := range c.headers {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chatPath, strings.NewReader(chatRequest))
				require.NoError(t, err)
				if service != "" {
					request.Header.Set("X-Service", service)
				}
				response, err := client(t).Do(request)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
			}
			require.Eventually(t, func() bool { return p.spans.SpanCount() == len(c.headers) }, time.Minute, time.Millisecond)
			found := map[string]int{}
			for _, traces := range p.spans.AllTraces() {
				for _, resource := range traces.ResourceSpans().All() {
					require.Equal(t, 1, resource.Resource().Attributes().Len())
					service, _ := resource.Resource().Attributes().Get("service.name")
					for _, span := range resource.ScopeSpans().At(0).Spans().All() {
						require.NotContains(t, span.Attributes().AsRaw(), "service.name")
						found[service.Str()]++
					}
				}
			}
			require.Equal(t, c.expected, found)
		})
	}
}
