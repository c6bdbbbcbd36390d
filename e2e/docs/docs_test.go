// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs tests that the pages say what the programs do.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// sources calls visit with each file of the project whose name matches, relative to the
// root.
func sources(t *testing.T, matches func(name string) bool, visit func(file string, content []byte)) {
	t.Helper()
	root := testenv.Root(t)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !matches(entry.Name()) {
			return nil
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := filepath.Rel(root, path)
		visit(filepath.ToSlash(file), content)
		return err
	}))
}

// Every self-metric says what to do.
func TestSelfMetrics_SayWhatToDo(t *testing.T) {
	t.Parallel()
	found := 0
	sources(t, func(name string) bool { return name == "metadata.yaml" }, func(file string, _ []byte) {
		metadata, err := confmaptest.LoadConf(filepath.Join(testenv.Root(t), file))
		require.NoError(t, err)
		metrics, err := metadata.Sub("telemetry::metrics")
		require.NoError(t, err)
		for metric := range metrics.ToStringMap() {
			found++
			if text, _ := metrics.Get(metric + "::extended_documentation").(string); !strings.HasPrefix(text, "**What to do:** ") {
				t.Errorf("%s of %s has no remedy: add `extended_documentation: \"**What to do:** ...\"`, then run make generate", metric, file)
			}
		}
	})
	require.Greater(t, found, 30)
}

// registryEntry has the keys of an entry of OpenTelemetry's registry that ours use.
type registryEntry struct {
	Title        string   `mapstructure:"title"`
	RegistryType string   `mapstructure:"registryType"`
	Language     string   `mapstructure:"language"`
	Tags         []string `mapstructure:"tags"`
	License      string   `mapstructure:"license"`
	Description  string   `mapstructure:"description"`
	Authors      []struct {
		Name string `mapstructure:"name"`
		URL  string `mapstructure:"url"`
	} `mapstructure:"authors"`
	URLs struct {
		Repo string `mapstructure:"repo"`
		Docs string `mapstructure:"docs"`
	} `mapstructure:"urls"`
	Package struct {
		Registry string `mapstructure:"registry"`
		Name     string `mapstructure:"name"`
	} `mapstructure:"package"`
}

// Each component has an entry, with the addresses of its folder.
func TestRegistry_HasEachComponent(t *testing.T) {
	entries, err := filepath.Glob(filepath.Join(testenv.Root(t), "docs", "registry", "*.yml"))
	require.NoError(t, err)
	components := 0
	sources(t, func(name string) bool { return name == "metadata.yaml" }, func(file string, _ []byte) {
		metadata, err := confmaptest.LoadConf(filepath.Join(testenv.Root(t), file))
		require.NoError(t, err)
		status, err := metadata.Sub("status")
		require.NoError(t, err)
		if status.Get("class") == "pkg" {
			return
		}
		components++
		class, kind, folder := status.Get("class").(string), metadata.Get("type").(string), filepath.ToSlash(filepath.Dir(file))
		name := "collector-" + class + "-" + strings.ReplaceAll(kind, "_", "") + ".yml"
		entry, err := confmaptest.LoadConf(filepath.Join(testenv.Root(t), "docs", "registry", name))
		require.NoError(t, err)
		var e registryEntry
		require.NoError(t, entry.Unmarshal(&e), "%s: a key that the registry does not have", name)
		require.Equal(t, class, e.RegistryType)
		require.Equal(t, "collector", e.Language)
		require.Contains(t, e.Tags, class)
		require.NotEmpty(t, e.Title)
		require.NotEmpty(t, e.Description)
		require.NotEmpty(t, e.Authors)
		const project = "github.com/tokenpulse/tokenpulse"
		require.Equal(t, "https://"+project+"/tree/main/"+folder, e.URLs.Repo)
		require.Equal(t, "https://"+project+"/blob/main/"+folder+"/README.md", e.URLs.Docs)
		require.Equal(t, "go-collector", e.Package.Registry)
		require.Equal(t, project+"/"+folder, e.Package.Name)
	})
	require.Len(t, entries, components)
}
