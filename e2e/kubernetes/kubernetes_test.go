// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes tests examples/kubernetes against the types of Kubernetes and of the operators.
// It is a module of its own, because these types need older versions of other modules.
package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	otel "github.com/open-telemetry/opentelemetry-operator/apis/v1beta1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// read decodes a file of the examples. An unknown field, or one that appears twice, fails.
func read[T any](t *testing.T, file string) (object T) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "examples", file))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, &object), file)
	return object
}

func TestFiles_DecodeAndAgree(t *testing.T) {
	gateway, sidecar := read[otel.OpenTelemetryCollector](t, "kubernetes/gateway.yaml"), read[otel.OpenTelemetryCollector](t, "kubernetes/sidecar.yaml")
	require.Equal(t, otel.ModeDeployment, gateway.Spec.Mode)
	require.Equal(t, otel.ModeSidecar, sidecar.Spec.Mode)
	ports := portsOf(t, gateway)
	require.Subset(t, portsOf(t, sidecar), map[string]int32{"token-tap": 4321})

	// The operator names the Deployment, the Service and the label of the pods like this.
	const name = "tokenpulse-collector"
	require.Equal(t, name, gateway.Name+"-collector")
	require.Equal(t, name+"."+gateway.Namespace+".svc.cluster.local:4317", sidecar.Spec.Config.Exporters.Object["otlp_grpc"].(map[string]any)["endpoint"])
	ofGateway := map[string]string{"app.kubernetes.io/name": name}

	monitor := read[monitoring.PodMonitor](t, "kubernetes/podmonitor.yaml")
	require.Equal(t, gateway.Namespace, monitor.Namespace)
	require.Equal(t, ofGateway, monitor.Spec.Selector.MatchLabels)
	requireJobs(t, map[string]string{"token-sli": "tokenpulse", "metrics": "tokenpulse-self"}, monitor.Spec.PodMetricsEndpoints)

	sidecars := read[monitoring.PodMonitor](t, "kubernetes/sidecar-podmonitor.yaml")
	require.Equal(t, sidecar.Namespace, sidecars.Namespace)
	require.Equal(t, map[string]string{"sidecar.opentelemetry.io/injected": sidecar.Namespace + "." + sidecar.Name}, sidecars.Spec.Selector.MatchLabels)
	requireJobs(t, map[string]string{"metrics": "tokenpulse-self"}, sidecars.Spec.PodMetricsEndpoints)

	policy := read[networking.NetworkPolicy](t, "kubernetes/networkpolicy.yaml")
	require.Equal(t, gateway.Namespace, policy.Namespace)
	require.Equal(t, ofGateway, policy.Spec.PodSelector.MatchLabels)
	var allowed []int32
	for _, rule := range policy.Spec.Ingress {
		require.NotEmpty(t, rule.From)
		for _, port := range rule.Ports {
			allowed = append(allowed, port.Port.IntVal)
		}
	}
	var open []int32
	for _, port := range ports {
		open = append(open, port)
	}
	require.ElementsMatch(t, open, allowed)

	engine, service := read[apps.Deployment](t, "kubernetes/engine.yaml"), read[core.Service](t, "kubernetes/engine-service.yaml")
	require.Equal(t, sidecar.Name, engine.Spec.Template.Annotations["sidecar.opentelemetry.io/inject"])
	require.Equal(t, engine.Spec.Template.Labels, engine.Spec.Selector.MatchLabels)
	require.Equal(t, engine.Spec.Template.Labels, service.Spec.Selector)
	require.Equal(t, portsOf(t, sidecar)["token-tap"], service.Spec.Ports[0].TargetPort.IntVal)
	for _, namespace := range []string{engine.Namespace, service.Namespace} {
		require.Equal(t, sidecar.Namespace, namespace)
	}
}

func TestPrometheusRule_HasTheRules(t *testing.T) {
	type rules struct{ Groups []monitoring.RuleGroup }
	want := read[rules](t, "prometheus/rules.yaml")
	require.NotEmpty(t, want.Groups)
	require.Equal(t, want.Groups, read[monitoring.PrometheusRule](t, "kubernetes/prometheusrule.yaml").Spec.Groups)
}

func TestConfigs_AreValid(t *testing.T) {
	for _, file := range []string{"gateway.yaml", "sidecar.yaml"} {
		object := read[otel.OpenTelemetryCollector](t, "kubernetes/"+file)
		config, err := yaml.Marshal(&object.Spec.Config)
		require.NoError(t, err)
		requireValid(t, config)
	}
}

// values are those of the chart opentelemetry-collector that the example sets.
type values struct {
	Mode          string
	ReplicaCount  int
	Image         struct{ Repository, Tag string }
	Command       struct{ Name string }
	Resources     core.ResourceRequirements
	UseGOMEMLIMIT bool `json:"useGOMEMLIMIT"`
	Config        map[string]any
	Ports         map[string]struct {
		Enabled                    bool
		ContainerPort, ServicePort int32
		Protocol                   core.Protocol
		AppProtocol                string
	}
	PodMonitor struct {
		Enabled          bool
		MetricsEndpoints []monitoring.PodMetricsEndpoint
	}
	NetworkPolicy struct {
		Enabled           bool
		AllowIngressFrom  []networking.NetworkPolicyPeer
		ExtraIngressRules []networking.NetworkPolicyIngressRule
	}
}

// chartConfig has the components and pipelines of the chart's own config, from version 0.120 on.
const chartConfig = `
exporters: {debug: {}}
extensions: {health_check: {endpoint: "${env:MY_POD_IP}:13133"}}
processors: {batch: {}, memory_limiter: {check_interval: 5s, limit_percentage: 80, spike_limit_percentage: 25}}
receivers:
  jaeger: {protocols: {grpc: {endpoint: "${env:MY_POD_IP}:14250"}, thrift_http: {endpoint: "${env:MY_POD_IP}:14268"}}}
  otlp: {protocols: {grpc: {endpoint: "${env:MY_POD_IP}:4317"}, http: {endpoint: "${env:MY_POD_IP}:4318"}}}
  prometheus: {config: {scrape_configs: [{job_name: opentelemetry-collector}]}}
  zipkin: {endpoint: "${env:MY_POD_IP}:9411"}
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: "${env:MY_POD_IP}", port: 8888}}}}]}}
  extensions: [health_check]
  pipelines:
    logs: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [debug]}
    metrics: {receivers: [otlp, prometheus], processors: [memory_limiter, batch], exporters: [debug]}
    traces: {receivers: [otlp, jaeger, zipkin], processors: [memory_limiter, batch], exporters: [debug]}
`

func TestChartValues_AreOursAndTheChartsTogether(t *testing.T) {
	chart := read[values](t, "kubernetes/chart-values.yaml")
	var config map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(chartConfig), &config))
	override(config, chart.Config)
	rendered, err := yaml.Marshal(config)
	require.NoError(t, err)
	requireValid(t, rendered)

	// The two ways to install the gateway are the same Collector.
	gateway := read[otel.OpenTelemetryCollector](t, "kubernetes/gateway.yaml")
	require.Equal(t, gateway.Spec.Config.Processors.Object["token_latency"], chart.Config["processors"].(map[string]any)["token_latency"])
	ours, theirs := gateway.Spec.Config.Exporters.Object["token_sli"].(map[string]any), chart.Config["exporters"].(map[string]any)["token_sli"].(map[string]any)
	delete(ours, "endpoint")
	delete(theirs, "endpoint")
	require.Equal(t, ours, theirs)
	require.Equal(t, gateway.Spec.Resources, chart.Resources)
	for _, port := range gateway.Spec.Ports {
		require.Equal(t, port.Port, chart.Ports[port.Name].ContainerPort, port.Name)
	}
	requireJobs(t, map[string]string{"token-sli": "tokenpulse", "metrics": "tokenpulse-self"}, chart.PodMonitor.MetricsEndpoints)
	for _, endpoint := range chart.PodMonitor.MetricsEndpoints {
		require.True(t, chart.Ports[*endpoint.Port].Enabled, "port %s", *endpoint.Port)
	}
}

// override merges values as Helm does: null removes a key.
func override(into, values map[string]any) {
	for key, value := range values {
		deeper, ok := value.(map[string]any)
		before, isMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok && isMap:
			override(before, deeper)
		default:
			into[key] = value
		}
	}
}

// portsOf returns the ports of a Collector by name: those in the file, and those that the operator adds.
func portsOf(t *testing.T, c otel.OpenTelemetryCollector) map[string]int32 {
	t.Helper()
	ports := map[string]int32{"metrics": 8888}
	if c.Spec.Mode == otel.ModeDeployment {
		ports["otlp-grpc"], ports["otlp-http"] = 4317, 4318
	}
	for _, port := range c.Spec.Ports {
		require.Empty(t, validation.IsValidPortName(port.Name), port.Name)
		ports[port.Name] = port.Port
	}
	return ports
}

// requireJobs requires the name of the job of each port. The rules select by it.
func requireJobs(t *testing.T, want map[string]string, endpoints []monitoring.PodMetricsEndpoint) {
	t.Helper()
	got := map[string]string{}
	for _, endpoint := range endpoints {
		require.Len(t, endpoint.RelabelConfigs, 1)
		require.Equal(t, "job", endpoint.RelabelConfigs[0].TargetLabel)
		got[*endpoint.Port] = *endpoint.RelabelConfigs[0].Replacement
	}
	require.Equal(t, want, got)
}

// requireValid lets the built Collector validate a config.
func requireValid(t *testing.T, config []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	command := exec.Command(filepath.Join(root, "dist", "otelcol-tokenpulse"), "validate", "--config", file)
	command.Env = append(os.Environ(), "MY_POD_IP=10.0.0.1")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", output, config)
}
