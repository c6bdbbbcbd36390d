// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the Grafana dashboards of examples/grafana.
//
//	dashboards FOLDER
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	plugins.RegisterDefaultPlugins()
	for _, b := range []board{overview, serviceLevels, engines, slowRequests, comparison} {
		if err := b.write(os.Args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "dashboards: %s: %v\n", b.file, err)
			os.Exit(1)
		}
	}
}

func (b board) write(folder string) error {
	built, err := b.build()
	if err != nil {
		return err
	}
	content, err := json.Marshal(built)
	if err != nil {
		return err
	}
	// Grafana's schema, as the SDK has it, knows each key of the file.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(content); err != nil {
		return fmt.Errorf("does not follow Grafana's schema: %w", err)
	}
	if content, err = withAnnotationTexts(content); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, b.file+".json"), content, 0o644)
}

// withAnnotationTexts adds what annotations show, which the SDK's types lack, and indents.
func withAnnotationTexts(content []byte) ([]byte, error) {
	var file map[string]any
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	for _, a := range file["annotations"].(map[string]any)["list"].([]any) {
		fields := a.(map[string]any)
		for key, text := range annotationTexts[fields["name"].(string)] {
			fields[key] = text
		}
	}
	var indented bytes.Buffer
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(file)
	return indented.Bytes(), err
}
