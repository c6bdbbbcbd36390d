// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the Grafana dashboards of examples/grafana. The files of the
// folder boards describe them, and common.yaml what they share.
//
//	dashboards FOLDER
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"go.yaml.in/yaml/v3"
)

//go:embed common.yaml boards
var files embed.FS

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	plugins.RegisterDefaultPlugins()
	if err := read("common.yaml", &common); err != nil {
		return err
	}
	names, err := fs.Glob(files, "boards/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		b := board{file: strings.TrimSuffix(filepath.Base(name), ".yaml")}
		if err := read(name, &b); err != nil {
			return err
		}
		if err := b.write(filepath.Join(folder, b.file+".json")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// read reads an embedded file, whose keys must all be known.
func read(name string, into any) error {
	content, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (b *board) write(file string) error {
	built, err := b.build()
	if err != nil {
		return err
	}
	if err := check(built); err != nil {
		return fmt.Errorf("does not follow Grafana's schema: %w", err)
	}
	var indented bytes.Buffer
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(built); err != nil {
		return err
	}
	return os.WriteFile(file, indented.Bytes(), 0o644)
}

// check reports keys that Grafana's schema, as its SDK has it, does not know. The schema lacks
// what annotations show.
func check(built object) error {
	known, annotations := merged(built), []any{}
	for _, a := range built["annotations"].(object)["list"].([]any) {
		annotation := merged(a.(object))
		for _, key := range []string{"titleFormat", "textFormat", "tagKeys"} {
			delete(annotation, key)
		}
		annotations = append(annotations, annotation)
	}
	known["annotations"] = object{"list": annotations}
	content, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return new(dashboard.Dashboard).UnmarshalJSONStrict(content)
}
