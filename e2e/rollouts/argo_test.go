// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/analysis"
	"github.com/argoproj/argo-rollouts/controller/metrics"
	argo "github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	clients "github.com/argoproj/argo-rollouts/pkg/client/clientset/versioned/fake"
	informers "github.com/argoproj/argo-rollouts/pkg/client/informers/externalversions"
	"github.com/argoproj/argo-rollouts/utils/queue"
	"github.com/argoproj/argo-rollouts/utils/record"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
)

// analyses is Argo's controller of analyses, with a cluster in memory.
type analyses struct{ cluster *clients.Clientset }

func startArgo(t *testing.T) *analyses {
	t.Helper()
	logrus.SetLevel(logrus.WarnLevel)
	cluster, kubernetes := clients.NewSimpleClientset(), fake.NewClientset()
	watched, jobs := informers.NewSharedInformerFactory(cluster, 0), kubeinformers.NewSharedInformerFactory(kubernetes, 0)
	controller := analysis.NewController(analysis.ControllerConfig{
		KubeClientSet: kubernetes, ArgoProjClientset: cluster,
		AnalysisRunInformer: watched.Argoproj().V1alpha1().AnalysisRuns(),
		JobInformer:         jobs.Batch().V1().Jobs(), JobPodsInformer: jobs.Core().V1().Pods(),
		AnalysisRunWorkQueue: workqueue.NewNamedRateLimitingQueue(queue.DefaultArgoRolloutsRateLimiter(), "AnalysisRuns"), //nolint:staticcheck // what the controller takes
		MetricsServer:        metrics.NewMetricsServer(metrics.ServerConfig{K8SRequestProvider: &metrics.K8sRequestsCountProvider{}}),
		Recorder:             record.NewFakeEventRecorder(),
	})
	watched.Start(t.Context().Done())
	jobs.Start(t.Context().Done())
	watched.WaitForCacheSync(t.Context().Done())
	jobs.WaitForCacheSync(t.Context().Done())
	go func() { _ = controller.Run(t.Context(), 2) }()
	return &analyses{cluster}
}

// finish starts an analysis, and returns its result when it has ended.
func (a *analyses) finish(t *testing.T, name string, run *argo.AnalysisRun) (result argo.MetricResult) {
	t.Helper()
	run.Name = name
	runs := a.cluster.ArgoprojV1alpha1().AnalysisRuns(run.Namespace)
	_, err := runs.Create(t.Context(), run, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		run, err = runs.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && run.Status.Phase.Completed()
	}, patience, time.Second)
	require.Len(t, run.Status.MetricResults, 1)
	result = run.Status.MetricResults[0]
	require.Equal(t, run.Status.Phase, result.Phase)
	return result
}
