// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda lets the code of KEDA read the answer of the Collector, as examples/capacity/scaledobject.yaml tells it to.
// It is a module of its own, because KEDA needs the libraries of all services that it can ask.
package keda

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/fallback"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

const root = "../.."

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// readScaledObject decodes the example. An unknown field, or one that appears twice, fails.
func readScaledObject(t *testing.T) *v1alpha1.ScaledObject {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "examples/capacity/scaledobject.yaml"))
	require.NoError(t, err)
	var object v1alpha1.ScaledObject
	require.NoError(t, yaml.UnmarshalStrict(content, &object))
	return &object
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// startCollector runs the Collector of the example, and returns where it serves its API and receives tokens.
func startCollector(t *testing.T) (api, tokens string) {
	t.Helper()
	api, tokens = freeAddress(t), freeAddress(t)
	command := exec.Command(filepath.Join(root, "dist", "otelcol-tokenpulse"), "--config", filepath.Join(root, "examples/capacity/collector.yaml"),
		"--set=receivers.token_stream.protocols.http.endpoint="+tokens, "--set=receivers.token_stream.protocols.grpc.endpoint="+freeAddress(t),
		"--set=service.telemetry.metrics.level=none")
	command.Env = append(os.Environ(), "METRICS_ENDPOINT="+api, "OTLP_GRPC_ENDPOINT="+freeAddress(t), "OTLP_HTTP_ENDPOINT="+freeAddress(t), "STORAGE_DIRECTORY="+t.TempDir())
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + api + "/metrics")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil
	}, 30*time.Second, 100*time.Millisecond)
	return api, tokens
}

// service is the Collector's address in the example.
const service = "http://tokenpulse.observability.svc.cluster.local:9464/"

func newScaler(t *testing.T, object *v1alpha1.ScaledObject, api string) scalers.Scaler {
	t.Helper()
	trigger := object.Spec.Triggers[0]
	require.Equal(t, "metrics-api", trigger.Type)
	require.Contains(t, trigger.Metadata["url"], service)
	trigger.Metadata["url"] = strings.Replace(trigger.Metadata["url"], service, "http://"+api+"/", 1)
	scaler, err := scalers.NewMetricsAPIScaler(&scalersconfig.ScalerConfig{
		ScalableObjectName: object.Name, ScalableObjectNamespace: object.Namespace, ScalableObjectType: "ScaledObject",
		GlobalHTTPTimeout: 3 * time.Second, // KEDA's default
		TriggerType:       trigger.Type, TriggerMetadata: trigger.Metadata, MetricType: trigger.MetricType,
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, scaler.Close(t.Context())) })
	return scaler
}

// deployment has the scaled object and its Deployment in a fake API server.
func deployment(t *testing.T, object *v1alpha1.ScaledObject, replicas int32) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, apps.AddToScheme(scheme))
	object.Status.ScaleTargetGVKR = &v1alpha1.GroupVersionKindResource{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments"}
	target := &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: object.Spec.ScaleTargetRef.Name, Namespace: object.Namespace},
		Spec:       apps.DeploymentSpec{Replicas: &replicas},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(object, target).WithStatusSubresource(object).Build()
}

// byAutoscaler returns the replicas that the HorizontalPodAutoscaler computes from a metric: its value over the target, rounded up.
func byAutoscaler(t *testing.T, metrics []external_metrics.ExternalMetricValue, spec *autoscaling.MetricSpec) int64 {
	t.Helper()
	require.Len(t, metrics, 1)
	require.Equal(t, autoscaling.AverageValueMetricType, spec.External.Target.Type)
	value, target := metrics[0].Value.MilliValue(), spec.External.Target.AverageValue.MilliValue()
	return (value + target - 1) / target
}

// Without a limit, the scaler fails. From the fifth failure on, KEDA holds the replicas: those of `fallback`, or more if there are more.
func TestScaler_FallsBackWhileNoLimitIsKnown(t *testing.T) {
	api, _ := startCollector(t)
	for replicas, want := range map[int32]int64{3: 6, 9: 9} {
		object := readScaledObject(t)
		scaler := newScaler(t, object, api)
		spec := scaler.GetMetricSpecForScaling(t.Context())[0]
		handler := fallback.ScaledObjectHandler{Ctx: t.Context(), KubeClient: deployment(t, object, replicas), UpdateLock: &sync.RWMutex{}, ScaledObject: object}
		for failure := range 6 {
			metrics, _, err := scaler.GetMetricsAndActivity(t.Context(), "m")
			require.ErrorContains(t, err, "/api/v1/capacity: api returned 503")
			metrics, active, err := fallback.GetMetricsWithFallback(handler, metrics, err, "m", spec)
			require.Equal(t, failure >= 4, active)
			if !active {
				require.ErrorContains(t, err, "503")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, byAutoscaler(t, metrics, &spec))
		}
	}
}

func TestScaler_ReadsTheReplicasNeeded(t *testing.T) {
	api, tokens := startCollector(t)
	object := readScaledObject(t)
	scaler := newScaler(t, object, api)
	output, err := exec.Command(filepath.Join(root, "dist", "tokenpulse"), "generate", "--engines=2", "--model=llama-3.1-8b", "--rate=1", "--peak-rate=5", "--fast",
		"--duration=11h", "--seed=1", "--transport=protobuf", "--endpoint="+tokens).CombinedOutput()
	require.NoError(t, err, "%s", output)

	url := object.Spec.Triggers[0].Metadata["url"]
	before := replicasNeeded(t, url)
	metrics, active, err := scaler.GetMetricsAndActivity(t.Context(), "m")
	require.NoError(t, err)
	after := replicasNeeded(t, url) // the load falls, since the traffic has ended
	require.True(t, active)
	require.Positive(t, after)
	needed := metrics[0].Value.MilliValue() / 1000
	require.LessOrEqual(t, needed, before)
	require.GreaterOrEqual(t, needed, after)
	spec := scaler.GetMetricSpecForScaling(t.Context())[0]
	require.Equal(t, (10*needed+7)/8, byAutoscaler(t, metrics, &spec), "a fifth of the limit stays free")
}

// replicasNeeded asks without KEDA.
func replicasNeeded(t *testing.T, url string) int64 {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var answer struct {
		Needed int64 `json:"replicas_needed"`
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	return answer.Needed
}
