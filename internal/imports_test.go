// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package internal_test checks the directions of imports that docs/architecture.md gives.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const (
	module  = "github.com/tokenpulse/tokenpulse/"
	readers = "internal/source"
)

// imports has the imports of each package of the module, which is named by its folder. It reads the files itself: the cache of test
// results does not know what a child process reads.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	root, all := testenv.Root(t), map[string][]string{}
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && isOther(file, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			all[filepath.ToSlash(folder)] = append(all[filepath.ToSlash(folder)], strings.TrimPrefix(imported, module))
		}
		return nil
	}))
	require.NotEmpty(t, all)
	return all
}

// isOther reports whether a folder is no part of the module: another module, test data or hidden.
func isOther(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil || name == "testdata" || name == "node_modules" || name == "dist" || strings.HasPrefix(name, ".")
}

// needs reports whether a package imports another one, directly or through others of the module.
func needs(all map[string][]string, name, other string) bool {
	return slices.ContainsFunc(all[name], func(imported string) bool { return imported == other || needs(all, imported, other) })
}

// component returns the folder of the component that the package belongs to, or "".
func component(name string) string {
	for _, kind := range [...]string{"receiver/", "processor/", "exporter/", "connector/"} {
		if rest, ok := strings.CutPrefix(name, kind); ok {
			folder, _, _ := strings.Cut(rest, "/")
			return path.Join(kind, folder)
		}
	}
	return ""
}

func TestImports_ComponentsImportInternalAndNeverEachOther(t *testing.T) {
	for name, all := range imports(t) {
		for _, imported := range all {
			of := component(imported)
			require.True(t, of == "" || of == component(name), "%s must not import %s", name, imported)
		}
	}
}

// What counts requests reads annotated spans only, so it is built without the readers of foreign spans.
func TestImports_OnlyWhatDerivesNeedsTheReaders(t *testing.T) {
	all := imports(t)
	require.True(t, needs(all, "processor/tokenlatencyprocessor", readers), "the readers were moved")
	for _, name := range [...]string{"exporter/tokensliexporter", "connector/tokensliconnector", "internal/spanreader", "internal/attributes"} {
		require.Contains(t, all, name, "a package was moved")
		require.False(t, needs(all, name, readers), "%s must not import %s, nor a package that does", name, readers)
	}
}

// Below the receiver of token events, each room from server down is built without those above it.
func TestImports_TokenStreamPointsDown(t *testing.T) {
	all, above := imports(t), []string{"receiver/tokenstreamreceiver"}
	for _, room := range [...]string{"server", "ingest", "streamseries", "streamspan", "assembly", "journal"} {
		name := "receiver/tokenstreamreceiver/internal/" + room
		require.Contains(t, all, name, "a package was moved")
		for _, other := range above {
			require.False(t, needs(all, name, other), "%s must not import %s, nor a package that does", name, other)
		}
		above = append(above, name)
	}
}

// Receivers show their open streams to whom labels them by series. Only the room of token_stream that makes metrics
// without spans has series of its own.
func TestImports_OpenStreamsNeedNoSeries(t *testing.T) {
	all := imports(t)
	require.True(t, needs(all, "receiver/tokenstreamreceiver/internal/streamseries", "internal/series"), "a package was moved")
	for _, name := range [...]string{"receiver/tokentapreceiver", "internal/inprocess"} {
		require.Contains(t, all, name, "a package was moved")
		require.False(t, needs(all, name, "internal/series"), "%s must not import internal/series, nor a package that does", name)
	}
	require.NotContains(t, all["receiver/tokenstreamreceiver"], "internal/series")
}

// Components report facts of all kinds to diagnostics, which concludes without what found them.
func TestImports_DiagnosticsKnowsOnlyWhatIsDerived(t *testing.T) {
	all := imports(t)
	require.True(t, needs(all, "internal/diagnostics", "internal/latency"), "a package was moved")
	for _, name := range [...]string{readers, "internal/slo", "internal/series"} {
		require.Contains(t, all, name, "a package was moved")
		require.False(t, needs(all, "internal/diagnostics", name), "internal/diagnostics must not import %s, nor a package that does", name)
	}
}

func TestImports_WhatCountsAndDerivesKnowsNoCollector(t *testing.T) {
	all := imports(t)
	for _, name := range [...]string{
		"internal/timeline", "internal/sketch", "internal/latency", "internal/slo", "internal/series",
		"internal/history", "internal/slowest", "internal/canary", "internal/liveness", "internal/capacity", "internal/batching", "internal/diagnostics",
		"receiver/tokenstreamreceiver/internal/wire",
	} {
		require.Contains(t, all, name, "a package was moved")
		for _, imported := range all[name] {
			require.False(t, strings.HasPrefix(imported, "go.opentelemetry.io/collector"), "%s must not import %s", name, imported)
		}
	}
}
