// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"os"
	"path/filepath"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"                     // in envoy.yaml
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3" // likewise
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	apps "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// Envoy itself is not run: neither Debian nor the Go module proxy has it.
func TestEnvoy_ConfigHasItsTypesAndAsksAsTheKubeletDoes(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "examples/liveness/envoy.yaml"))
	require.NoError(t, err)
	json, err := yaml.YAMLToJSONStrict(content)
	require.NoError(t, err)
	var config bootstrap.Bootstrap
	require.NoError(t, protojson.Unmarshal(json, &config), "an unknown field, or a value of another type")
	require.NoError(t, config.ValidateAll())

	engines := config.StaticResources.Clusters[0]
	check, endpoint := engines.HealthChecks[0].GetHttpHealthCheck(), engines.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint()
	probe := read[apps.Deployment](t, "kubernetes/engine.yaml").Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet
	require.Equal(t, probe.Path, check.Path)
	require.EqualValues(t, probe.Port.IntVal, endpoint.HealthCheckConfig.PortValue)
	require.EqualValues(t, 4321, endpoint.Address.GetSocketAddress().GetPortValue(), "token_tap, as in sidecar.yaml")
}
