// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplica(t *testing.T) {
	all := map[string]string{
		"service.instance.id": "instance", "server.address": "10.0.0.1", "server.port": "8000", "k8s.pod.name": "pod", "host.name": "host",
	}
	for name, tt := range map[string]struct {
		without         []string
		inside, outside string
	}{
		"everything":         {nil, "instance", "10.0.0.1:8000"},
		"no instance":        {[]string{"service.instance.id"}, "10.0.0.1:8000", "10.0.0.1:8000"},
		"no port":            {[]string{"service.instance.id", "server.port"}, "10.0.0.1", "10.0.0.1"},
		"a port alone":       {[]string{"service.instance.id", "server.address"}, "pod", ""},
		"instance alone":     {[]string{"server.address", "server.port", "k8s.pod.name", "host.name"}, "instance", ""},
		"host alone":         {[]string{"service.instance.id", "server.address", "server.port", "k8s.pod.name"}, "host", ""},
		"nothing":            {[]string{"service.instance.id", "server.address", "server.port", "k8s.pod.name", "host.name"}, "", ""},
		"pod and host alone": {[]string{"service.instance.id", "server.address", "server.port"}, "pod", ""},
	} {
		t.Run(name, func(t *testing.T) {
			value := func(name string) string {
				require.Contains(t, OfReplica, name)
				if slices.Contains(tt.without, name) {
					return ""
				}
				return all[name]
			}
			for vantage, want := range map[string]string{
				"client": tt.outside, "gateway": tt.outside, "server": tt.inside, "engine": tt.inside, "": tt.inside,
			} {
				require.Equal(t, want, Replica(vantage, value), vantage)
			}
		})
	}
}

// The name is the one that token_tap gives its engine, which is a host and a port of a URL.
func TestReplica_AtAnAddressOfIPv6(t *testing.T) {
	at := map[string]string{"server.address": "fd00::1", "server.port": "8000"}
	require.Equal(t, "[fd00::1]:8000", Replica("gateway", func(name string) string { return at[name] }))
}
