// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads the settings of token_latency and token_sli from a file: a configuration of the Collector, or
// settings of these two at its top level. The components decode and check them, so the errors are those of the Collector.
package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

// Config holds valid settings.
type Config struct {
	// Latency are the settings of token_latency, with `slos`.
	Latency *annotate.Config
	// SLI are the settings that the exporter and the connector token_sli share, with `objectives`.
	SLI *keeper.Config
}

// Default returns the settings of components without any key.
func Default() Config {
	sli := keeper.NewDefaultConfig()
	return Config{Latency: annotate.DefaultConfig(), SLI: &sli}
}

// Load reads the settings of a file. Of a configuration of the Collector, it reads the sections token_latency,
// token_sli and token_stream. Missing settings have their defaults. ${env:NAME} and ${file:NAME} are replaced as in the
// Collector.
//
// If several sections have settings of a kind, the path ends in # and the ID of the component, such as
// collector.yaml#token_latency/chat, or its name, such as collector.yaml#chat.
func Load(ctx context.Context, path string) (Config, error) {
	file, selection := path, ""
	if i := strings.LastIndexByte(path, '#'); i >= 0 && !exists(path) {
		file, selection = path[:i], path[i+1:]
	}
	conf, err := resolve(ctx, file)
	if err != nil {
		return Config{}, err
	}
	config, err := read(conf, selection)
	if err != nil {
		return Config{}, inFile(file, err)
	}
	return config, nil
}

// TakeSLOs replaces the SLOs and objectives by those of a file that Load reads.
func (c *Config) TakeSLOs(ctx context.Context, path string) error {
	from, err := Load(ctx, path)
	if err == nil {
		c.Latency.SLOs, c.SLI.Objectives = from.Latency.SLOs, from.SLI.Objectives
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func resolve(ctx context.Context, file string) (*confmap.Conf, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err // of the Collector, it would have the path twice
	}
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"file:" + file},
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
		DefaultScheme:     "env",
	})
	if err != nil {
		return nil, err
	}
	conf, err := resolver.Resolve(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return conf, nil
}

// inFile puts the name of the file before each line of an error: joined errors have one each.
func inFile(file string, err error) error {
	return errors.New(file + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+file+": "))
}
