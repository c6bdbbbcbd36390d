// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

const examples = "../../../../examples"

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func names(c Config) (slos, objectives []string) {
	for _, slo := range c.Latency.SLOs {
		slos = append(slos, slo.Name)
	}
	for _, o := range c.SLI.Objectives {
		objectives = append(objectives, o.SLO)
	}
	return slos, objectives
}

func TestLoad_ReadsListsAtTheTopLevel(t *testing.T) {
	config, err := Load(t.Context(), write(t, `
slos: [{name: fast, indicator: time_to_first_token, threshold: 250ms}]
objectives: [{slo: fast, objective: 0.9}, {slo: all, objective: 0.5, window: 168h}]
`))
	require.NoError(t, err)
	slos, objectives := names(config)
	require.Equal(t, []string{"fast"}, slos)
	require.Equal(t, []string{"fast", "all"}, objectives)
	require.Equal(t, 30*24*time.Hour, config.SLI.Objectives[0].Window, "default of the Collector")
	require.Equal(t, 500*time.Millisecond, config.Latency.StallThreshold, "default of the Collector")
}

// A section that was cut out of a configuration, such as that of the exporter with its endpoint.
func TestLoad_ReadsOneSectionAlone(t *testing.T) {
	config, err := Load(t.Context(), write(t, "{stall_threshold: 1s, slos: [{name: ok, indicator: outcome}]}"))
	require.NoError(t, err)
	require.Equal(t, time.Second, config.Latency.StallThreshold)
	require.Equal(t, keeper.NewDefaultConfig(), *config.SLI)

	config, err = Load(t.Context(), write(t, "{endpoint: 'localhost:1', dimensions: [service.name], objectives: [{slo: ok, objective: 0.9}]}"))
	require.NoError(t, err)
	require.Equal(t, []string{"service.name"}, config.SLI.Series.Dimensions.Names())
	require.Equal(t, Default().Latency, config.Latency)
}

func TestLoad_ReadsSectionsOfTheCollector(t *testing.T) {
	t.Setenv("SLO", "fast")
	config, err := Load(t.Context(), write(t, `
receivers:
  token_stream: # without settings of either kind
  otlp: {protocols: {grpc: }}
processors:
  token_latency/a: {stall_threshold: "${env:STALL:-2s}", slos: [{name: "${env:SLO}", indicator: outcome}]}
exporters:
  debug: {verbosity: detailed}
connectors:
  token_sli: {temporality: delta, objectives: [{slo: "${SLO}", objective: 0.99}]}
`))
	require.NoError(t, err)
	slos, objectives := names(config)
	require.Equal(t, []string{"fast"}, slos)
	require.Equal(t, slos, objectives)
	require.Equal(t, 2*time.Second, config.Latency.StallThreshold)
}

func TestLoad_ReadsSectionsOfTokenStream(t *testing.T) {
	config, err := Load(t.Context(), write(t, `
receivers:
  token_stream:
    latency: {slos: [{name: fast, indicator: time_to_first_token, threshold: 1s}]}
    series: {objectives: [{slo: fast, objective: 0.9}]}
`))
	require.NoError(t, err)
	slos, objectives := names(config)
	require.Equal(t, []string{"fast"}, slos)
	require.Equal(t, []string{"fast"}, objectives)
}

func TestLoad_ChoosesOneOfSeveralSections(t *testing.T) {
	file := filepath.Join(examples, "slo/presets.yaml")
	for _, selection := range []string{"#chat", "#token_latency/chat,token_sli/chat", "#processors::token_latency/chat,exporters::token_sli/chat"} {
		config, err := Load(t.Context(), file+selection)
		require.NoError(t, err, selection)
		slos, objectives := names(config)
		require.Equal(t, []string{"chat-ttft", "chat-tpot"}, slos)
		require.Equal(t, slos, objectives)
	}

	_, err := Load(t.Context(), file)
	require.ErrorContains(t, err, "presets.yaml: settings of token_latency are in processors::token_latency/chat, processors::token_latency/coding_assistant, ")
	require.ErrorContains(t, err, "choose by #ID after the name of the file, such as #processors::token_latency/chat\n")
	_, err = Load(t.Context(), file+"#token_latency/chat")
	require.NotContains(t, err.Error(), "settings of token_latency")
	require.ErrorContains(t, err, "settings of token_sli are in exporters::token_sli/chat, ")
	require.ErrorContains(t, err, "such as #token_latency/chat,exporters::token_sli/chat")
	_, err = Load(t.Context(), file+"#chats")
	require.ErrorContains(t, err, "no component is named chats; choose one of processors::token_latency/chat, ")
}

// An exporter that serves the metrics of a receiver has an endpoint alone.
func TestLoad_PassesOverComponentsWithoutSettings(t *testing.T) {
	config, err := Load(t.Context(), write(t, `
receivers: {token_stream: {series: {objectives: [{slo: a, objective: 0.9}]}}}
exporters: {token_sli/idle: , token_sli: {endpoint: 'localhost:1'}}
`))
	require.NoError(t, err)
	require.Equal(t, "a", config.SLI.Objectives[0].SLO)
}

// The exporter and the connector may have the same ID.
func TestLoad_ChoosesByClass(t *testing.T) {
	file := write(t, `
exporters: {token_sli: {objectives: [{slo: a, objective: 0.9}]}}
connectors: {token_sli: {objectives: [{slo: b, objective: 0.9}]}}
`)
	_, err := Load(t.Context(), file+"#token_sli")
	require.ErrorContains(t, err, "settings of token_sli are in connectors::token_sli, exporters::token_sli")
	config, err := Load(t.Context(), file+"#exporters::token_sli")
	require.NoError(t, err)
	require.Equal(t, "a", config.SLI.Objectives[0].SLO)
}

func TestLoad_NamesFileKeyAndRemedy(t *testing.T) {
	for text, message := range map[string]string{
		"":                           "the file is empty",
		"slos: [{name: a}]":          "slos::0: unknown indicator \"\"; valid indicators: chunk.count,",
		"{slos: [{nam: a}]}":         "unknown key \"nam\" in `slos::0`; valid keys: name, indicator,",
		"{sols: []}":                 "unknown key \"sols\"; valid keys: timeline, ",
		"{objectives: [{slo: a}]}":   "`objectives::0::objective` is 0; use the share of good requests",
		"{exporters: , slos: []}":    "unknown key \"slos\" beside sections of the Collector; valid keys: receivers,",
		"{exporters: {debug: }}":     "no section token_latency or token_sli; add one",
		"{slos: [}":                  "not valid YAML",
		"{slos: '${vault:a}'}":       "scheme \"vault\" is not supported",
		"{exporters: [token_sli]}":   "sub-config",
		"{connectors: {token_sli: }": "not valid YAML",
		"{processors: {token_latency: {slo: []}}, exporters: {token_sli: {objective: []}}}": "exporters::token_sli: unknown key \"objective\"",
		"{processors: {token_latency/x: {slo: []}}}":                                        "processors::token_latency/x: unknown key \"slo\"; valid keys: timeline,",
	} {
		t.Run(text, func(t *testing.T) {
			file := write(t, text)
			_, err := Load(t.Context(), file)
			require.ErrorContains(t, err, message)
			require.True(t, strings.HasPrefix(err.Error(), file+": "), err)
		})
	}
	_, err := Load(t.Context(), "missing.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(t.Context(), write(t, "slos: []")+"#a")
	require.ErrorContains(t, err, "#a chooses a component, but the file has the settings at its top level; remove it")
}

func TestTakeSLOs_KeepsOtherSettings(t *testing.T) {
	config, err := Load(t.Context(), write(t, "{stall_threshold: 1s, slos: [{name: old, indicator: outcome}], max_series: 7}"))
	require.NoError(t, err)
	require.NoError(t, config.TakeSLOs(t.Context(), write(t, "{stall_threshold: 2s, slos: [{name: new, indicator: outcome}], objectives: [{slo: new, objective: 0.9}]}")))
	slos, objectives := names(config)
	require.Equal(t, []string{"new"}, slos)
	require.Equal(t, slos, objectives)
	require.Equal(t, time.Second, config.Latency.StallThreshold)
	require.Equal(t, 7, config.SLI.Series.MaxSeries)
}

func TestLoad_ReadsExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		_, err := Load(t.Context(), file)
		require.NoError(t, err)
	}
}
