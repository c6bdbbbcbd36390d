// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dns1123 is the expression in the error messages of Kubernetes.
var dns1123 = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// objectives returns a file with an objective for each SLO.
func objectives(names ...string) string {
	var text strings.Builder
	text.WriteString("objectives:\n")
	for _, name := range names {
		fmt.Fprintf(&text, "  - {slo: %q, objective: 0.99}\n", name)
	}
	return text.String()
}

func objectNamesOf(t *testing.T, slos ...string) (names []string, notes string) {
	t.Helper()
	e := requireExport(t, "openslo", objectives(slos...))
	for _, one := range documents(t, e.Text) {
		names = append(names, at(t, one, "metadata", "name").(string))
	}
	return names, strings.Join(e.Notes, "\n")
}

func TestObjectNames_AreNamesOfKubernetesAndDiffer(t *testing.T) {
	long := strings.Repeat("a", 80)
	slos := []string{
		"chat-ttft", "0", "all", strings.Repeat("b", 63),
		"Chat TTFT", "chat_ttft", "CHAT.TTFT", "-x-", "日本", "{{.window}}\n\"'", long, long[:79] + "b",
	}
	names, notes := objectNamesOf(t, slos...)
	require.Equal(t, slos[:4], names[:4], "valid names stay")
	for i, name := range names {
		require.Regexp(t, dns1123, name)
		require.NotContains(t, names[:i], name)
	}
	for i, slo := range slos[4:] {
		require.Contains(t, notes, fmt.Sprintf("%q is %s", slo, names[4+i]))
	}
	require.Equal(t, 8, strings.Count(notes, " is "))
}

// A new SLO does not rename the objects of others.
func TestObjectNames_DoNotDependOnOrder(t *testing.T) {
	slos := []string{"a_b", "a.b", "a-b", "c d"}
	names, _ := objectNamesOf(t, slos...)
	slices.Reverse(slos)
	reversed, _ := objectNamesOf(t, slos...)
	slices.Reverse(reversed)
	require.Equal(t, names, reversed)
	require.Equal(t, "a-b", names[2])
	require.Equal(t, "c-d", names[3])
}

// Pyrra's own label slo has the name of the object. An equality matcher of the counter's label slo would replace it.
func TestPyrra_MatchesRenamedSLOsByRegularExpression(t *testing.T) {
	e := requireExport(t, "pyrra", objectives("chat", `Chat "1.5s"`))
	all := documents(t, e.Text)
	metric := func(i int, which string) any { return at(t, all[i], "spec", "indicator", "ratio", which, "metric") }
	require.Equal(t, `tokenpulse_slo_requests_total{slo="chat", verdict="bad"}`, metric(0, "errors"))
	require.Equal(t, `tokenpulse_slo_requests_total{slo="chat", verdict=~"good|bad"}`, metric(0, "total"))
	require.Equal(t, `tokenpulse_slo_requests_total{slo=~"Chat \"1\\.5s\"", verdict="bad"}`, metric(1, "errors"))
	require.Equal(t, "chat-1-5s", at(t, all[1], "metadata", "name"))
	require.Contains(t, strings.Join(e.Notes, "\n"), `Pyrra alerts on "Chat \"1.5s\"", but shows no error budget`)
}

func TestPyrra_HasTargetAndWindow(t *testing.T) {
	e := requireExport(t, "pyrra", "objectives: [{slo: a, objective: 0.999, window: 168h}, {slo: b, objective: 0.95}]")
	all := documents(t, e.Text)
	require.Equal(t, "99.9", at(t, all[0], "spec", "target"), "text: floats are no values of Kubernetes")
	require.Equal(t, "1w", at(t, all[0], "spec", "window"))
	require.Equal(t, "95", at(t, all[1], "spec", "target"))
	require.Equal(t, "30d", at(t, all[1], "spec", "window"))
	require.Empty(t, e.Notes)
}

// With an objective of 0.9, a burn rate of 10 means that all requests are bad.
func TestPyrraAndSloth_NameObjectivesThatTheirFastestAlertCannotReach(t *testing.T) {
	for _, format := range []string{"pyrra", "sloth"} {
		notes := strings.Join(requireExport(t, format, "objectives: [{slo: low, objective: 0.9}, {slo: high, objective: 0.95}]").Notes, "\n")
		require.Contains(t, notes, `these objectives allow: "low" (10); rules of --to prometheus alert`)
		require.NotContains(t, notes, `"high"`)
	}
}

func TestSloth_HasAnObjectForEachWindow(t *testing.T) {
	e := requireExport(t, "sloth", "objectives: [{slo: a, objective: 0.99}, {slo: b, objective: 0.99, window: 168h}, {slo: c, objective: 0.99}]")
	all := documents(t, e.Text)
	require.Len(t, all, 2)
	require.Equal(t, "tokenpulse-1w", at(t, all[0], "metadata", "name"))
	require.Equal(t, "b", at(t, all[0], "spec", "slos", 0, "name"))
	require.Equal(t, "tokenpulse-30d", at(t, all[1], "metadata", "name"))
	require.Equal(t, "c", at(t, all[1], "spec", "slos", 1, "name"))
	require.Equal(t, []string{"Sloth reads no window from a file: give tokenpulse-1w to Sloth by itself, with --default-slo-period=1w and, " +
		"for periods other than 28d and 30d, AlertWindows by --slo-period-windows-path"}, e.Notes)
}

func TestOpenSLO_HasTheLargestUnitThatDividesAWindow(t *testing.T) {
	e := requireExport(t, "openslo", "objectives: [{slo: a, objective: 0.99}, {slo: b, objective: 0.99, window: 36h}, {slo: c, objective: 0.99, window: 90m}]")
	var durations []any
	for _, one := range documents(t, e.Text) {
		durations = append(durations, at(t, one, "spec", "timeWindow", 0, "duration"))
	}
	require.Equal(t, []any{"30d", "36h", "90m"}, durations)

	_, err := export(t, "openslo", "objectives: [{slo: a, objective: 0.99, window: 3601s}]")
	require.EqualError(t, err, "objective of SLO \"a\": `window` is 1h0m1s; OpenSLO has whole minutes")
}

// The specification limits descriptions to 1050 characters.
func TestOpenSLO_CutsLongDescriptions(t *testing.T) {
	e := requireExport(t, "openslo", "{slos: [{name: a, indicator: outcome, match: {k: "+strings.Repeat("ä", 2000)+"}}], objectives: [{slo: a, objective: 0.9}]}")
	require.Len(t, []rune(at(t, documents(t, e.Text)[0], "spec", "description").(string)), 1050)
}
