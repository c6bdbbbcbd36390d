// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The expected alerts of the rules are in examples/prometheus/rules_test.yaml, and engines_test.yaml in smaller steps.
func TestPrometheusExample_IsValidAndRaisesTheExpectedAlerts(t *testing.T) {
	t.Parallel()
	tool := testenv.Program(t, "promtool")
	for name, args := range map[string][]string{
		"rules are valid":   {"check", "rules", prometheusExample(t, "rules.yaml")},
		"config is valid":   {"check", "config", prometheusExample(t, "prometheus.yaml")},
		"alerts are raised": {"test", "rules", prometheusExample(t, "rules_test.yaml"), prometheusExample(t, "engines_test.yaml")},
	} {
		t.Run(name, func(t *testing.T) { collector.Run(t, tool, args...) })
	}
}

// Links of an alert: the entry of the runbook has the alert's name.
func TestRules_EveryAlertLinksToItsRunbookEntryAndADashboard(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	parse(t, prometheusExample(t, "rules.yaml"), &rules)
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			alerts++
			requireRunbookEntry(t, rule.Alert, rule.Annotations["runbook_url"])
			require.Regexp(t, "^https?://", rule.Annotations["dashboard_url"], rule.Alert)
		}
	}
	require.Greater(t, alerts, 10)
}

// requireRunbookEntry checks that a link leads to the entry of an alert.
func requireRunbookEntry(t *testing.T, alert, link string) {
	t.Helper()
	page, anchor, _ := strings.Cut(link, "#")
	require.Equal(t, "https://github.com/tokenpulse/tokenpulse/blob/main/docs/runbook.md", page, alert)
	require.Equal(t, strings.ToLower(alert), anchor)
	require.Contains(t, markdown.Anchors(markdown.Read(t, "docs/runbook.md")), anchor)
}

func TestAlertmanagerExample_RoutesEverySeverityToItsOwnReceiver(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert  string
				Labels struct{ Severity string }
			}
		}
	}
	parse(t, prometheusExample(t, "rules.yaml"), &rules)
	var alertmanager struct {
		Route struct {
			Receiver string
			Routes   []struct {
				Matchers []string
				Receiver string
			}
		}
		Receivers []struct{ Name string }
	}
	parse(t, prometheusExample(t, "alertmanager.yaml"), &alertmanager)

	var receivers []string
	for _, receiver := range alertmanager.Receivers {
		receivers = append(receivers, receiver.Name)
	}
	require.Contains(t, receivers, alertmanager.Route.Receiver)
	routed := map[string]string{}
	for _, route := range alertmanager.Route.Routes {
		require.Len(t, route.Matchers, 1)
		require.Contains(t, receivers, route.Receiver)
		routed[route.Matchers[0]] = route.Receiver
	}

	want := map[string]string{}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				want[`severity="`+rule.Labels.Severity+`"`] = rule.Labels.Severity
			}
		}
	}
	require.Equal(t, want, routed)
}

func TestAlertmanagerExample_IsValidAndRoutesBySeverity(t *testing.T) {
	t.Parallel()
	tool, config := testenv.Program(t, "amtool"), prometheusExample(t, "alertmanager.yaml")
	collector.Run(t, tool, "check-config", config)
	for severity, want := range map[string]string{"page": "page", "ticket": "ticket", "none": "ticket"} {
		routed, err := exec.CommandContext(t.Context(), tool, "config", "routes", "test", "--config.file="+config, "severity="+severity).Output()
		require.NoError(t, err, "%s", routed)
		require.Equal(t, want, strings.TrimSpace(string(routed)), "severity %s", severity)
	}
}

// parse reads a YAML file into a value. Keys without a field are ignored.
func parse(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	retrieved, err := confmap.NewRetrievedFromYAML(content)
	require.NoError(t, err)
	raw, err := retrieved.AsRaw()
	require.NoError(t, err)
	encoded, err := json.Marshal(raw)
	require.NoError(t, err, path)
	require.NoError(t, json.Unmarshal(encoded, into), path)
}

func prometheusExample(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "examples", "prometheus", name)
}
