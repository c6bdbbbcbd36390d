// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package compose tests examples/compose and the container image: its files here, the containers
// with make suite-compose.
package compose

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// composeFile is what the project uses of the Compose Specification. Any other key is an error.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Volumes     []string
		Ports       []string
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		DependsOn   []string `yaml:"depends_on"`
		Restart     string
	}
	Volumes map[string]any
}

// decode reads YAML that has known keys only.
func decode(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(into), file)
}

func readCompose(t *testing.T) (file composeFile) {
	t.Helper()
	decode(t, collector.Example(t, "compose/compose.yaml"), &file)
	require.Len(t, file.Services, 6)
	return file
}

// mounts returns the files and folders of the project that a service reads, by their path in its
// container.
func (f composeFile) mounts(t *testing.T, service string) map[string]string {
	t.Helper()
	mounted := map[string]string{}
	for _, volume := range f.Services[service].Volumes {
		parts := strings.Split(volume, ":")
		if !strings.HasPrefix(parts[0], ".") {
			require.Contains(t, f.Volumes, parts[0], "volume of %s", service)
			continue
		}
		require.Len(t, parts, 3, volume)
		require.Equal(t, "ro", parts[2], "%s may change a file of the project", service)
		mounted[parts[1]] = filepath.Join(collector.Example(t, "compose"), filepath.FromSlash(parts[0]))
		_, err := os.Stat(mounted[parts[1]]) // Docker would create a folder instead
		require.NoError(t, err, "mounted by %s", service)
	}
	return mounted
}

func TestCompose_MountsExistAndPortsAreLocal(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	for name, service := range file.Services {
		file.mounts(t, name)
		for _, port := range service.Ports {
			require.Regexp(t, `^127\.0\.0\.1:(\d+):\d+$`, port, name)
		}
		require.Regexp(t, `^[a-z/-]+:(local|v?\d+\.\d+\.\d+)$`, service.Image, "an image without a version changes by itself")
	}
}

// The Collector reads the config of the image, then that of the example.
func TestCompose_CollectorTakesItsConfigs(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	inImage := map[string]string{"/etc/otelcol-tokenpulse/config.yaml": filepath.Join(testenv.Root(t), "packaging", "config.yaml")}
	mounted := file.mounts(t, "collector")
	arguments := []string{"validate", "--set=extensions.file_storage.directory=" + t.TempDir()}
	for _, argument := range file.Services["collector"].Command {
		name := strings.TrimPrefix(argument, "--config=")
		read, ok := inImage[name]
		if !ok {
			require.Contains(t, mounted, name)
			read = mounted[name]
		}
		arguments = append(arguments, "--config="+read)
	}
	require.Len(t, arguments, 4)
	collector.Run(t, collector.Built(t, "otelcol-tokenpulse"), arguments...)
}

func TestCompose_PrometheusReachesWhatComposeStarts(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	mounted := file.mounts(t, "prometheus")
	type targets struct {
		StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
	}
	var config struct {
		Global    map[string]string
		RuleFiles []string `yaml:"rule_files"`
		Alerting  struct{ Alertmanagers []targets }
		Scrape    []struct {
			JobName string `yaml:"job_name"`
			Native  bool   `yaml:"scrape_native_histograms"`
			targets `yaml:",inline"`
		} `yaml:"scrape_configs"`
	}
	decode(t, mounted["/etc/prometheus/prometheus.yml"], &config)
	require.Equal(t, collector.Example(t, "prometheus/rules.yaml"), mounted[path.Join("/etc/prometheus", config.RuleFiles[0])])
	all := config.Alerting.Alertmanagers
	for _, job := range config.Scrape {
		all = append(all, job.targets)
	}
	require.Len(t, all, 3)
	for _, some := range all {
		service, _, _ := strings.Cut(some.StaticConfigs[0].Targets[0], ":")
		require.Contains(t, file.Services, service)
	}
}

// What Grafana reads of its provisioning files, from pkg/services/provisioning in its sources
// (datasources/types.go and dashboards/types.go) and its documentation. It ignores other keys.
type (
	provisionedSources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, UID, URL, Access string
			IsDefault                    bool `yaml:"isDefault"`
			JSONData                     struct {
				HTTPMethod   string `yaml:"httpMethod"`
				TimeInterval string `yaml:"timeInterval"`
				Exemplars    []struct {
					Name          string
					DatasourceUID string `yaml:"datasourceUid"`
					URL           string
				} `yaml:"exemplarTraceIdDestinations"`
			} `yaml:"jsonData"`
		}
	}
	provisionedDashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			Options            struct{ Path string }
		}
	}
)

func TestCompose_GrafanaFindsDashboardsAndTheirDataSources(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	mounted := file.mounts(t, "grafana")
	const provisioning = "/etc/grafana/provisioning/"

	var sources provisionedSources
	decode(t, mounted[provisioning+"datasources/tokenpulse.yaml"], &sources)
	require.Equal(t, 1, sources.APIVersion)
	byUID := map[string]string{}
	for _, source := range sources.Datasources {
		byUID[source.UID] = source.Type
		service, _, _ := strings.Cut(strings.TrimPrefix(source.URL, "http://"), ":")
		require.Contains(t, file.Services, service)
	}
	prometheus := sources.Datasources[0]
	require.True(t, prometheus.IsDefault) // the variable of the dashboards selects it
	require.Contains(t, byUID, prometheus.JSONData.Exemplars[0].DatasourceUID)

	var folders provisionedDashboards
	decode(t, mounted[provisioning+"dashboards/tokenpulse.yaml"], &folders)
	require.Equal(t, 1, folders.APIVersion)
	require.Equal(t, "file", folders.Providers[0].Type)
	folder := folders.Providers[0].Options.Path
	require.Contains(t, mounted, folder)
	home := file.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	require.FileExists(t, strings.Replace(home, folder, mounted[folder], 1))

	// Grafana reads each file whose name ends in .json, in folders below, too.
	dashboards := 0
	require.NoError(t, filepath.WalkDir(mounted[folder], func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) != ".json" {
			return err
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var dashboard struct {
			UID        string
			Templating struct {
				List []struct{ Name, Type, Query string }
			}
		}
		require.NoError(t, json.Unmarshal(content, &dashboard), file)
		require.NotEmpty(t, dashboard.UID, file)
		source := dashboard.Templating.List[0]
		require.Equal(t, []string{"datasource", "datasource", prometheus.Type}, []string{source.Name, source.Type, source.Query}, file)
		for _, uid := range dataSources(t, content) {
			if uid != "${datasource}" {
				require.Contains(t, byUID, uid, file)
			}
		}
		dashboards++
		return nil
	}))
	require.Equal(t, 5, dashboards)
}

// dataSources returns the UIDs of the data sources that the parts of a dashboard name.
func dataSources(t *testing.T, dashboard []byte) (uids []string) {
	t.Helper()
	var parsed any
	require.NoError(t, json.Unmarshal(dashboard, &parsed))
	var visit func(any)
	visit = func(part any) {
		switch part := part.(type) {
		case []any:
			for _, element := range part {
				visit(element)
			}
		case map[string]any:
			if source, ok := part["datasource"].(map[string]any); ok {
				uids = append(uids, source["uid"].(string))
			}
			for _, value := range part {
				visit(value)
			}
		}
	}
	visit(parsed)
	require.NotEmpty(t, uids)
	return uids
}
