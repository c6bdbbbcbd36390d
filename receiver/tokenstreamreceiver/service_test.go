// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Trace backends group spans by the service of their resource, and have an odd name of their own for none.
func TestService_OfStream(t *testing.T) {
	for name, c := range map[string]struct {
		setting, resource string
		expected          map[string]any
	}{
		"without a resource": {"", "", map[string]any{"service.name": "unknown_service"}},
		"from the setting":   {"chat", `,"resource":{"host.name":"a"}`, map[string]any{"host.name": "a", "service.name": "chat"}},
		"of the sender":      {"chat", `,"resource":{"service.name":"shop"}`, map[string]any{"service.name": "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(cfg *Config) {
				if c.setting != "" {
					cfg.ServiceName = c.setting
				}
			})
			b.lines(t,
				fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d"%s}`, at(0), c.resource),
				fmt.Sprintf(`{"event":"end","stream_id":"s","time_unix_nano":"%d"}`, at(1000)))
			require.Equal(t, c.expected, b.sink.one(t).Resource)
		})
	}
}
