// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector"
	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter"
	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver"
)

// Classes of components in a configuration of the Collector.
const (
	receivers  = "receivers"
	processors = "processors"
	exporters  = "exporters"
	connectors = "connectors"
)

// factories are those of the components with settings of either kind.
var factories = map[string]component.Factory{
	receivers:  tokenstreamreceiver.NewFactory(),
	processors: tokenlatencyprocessor.NewFactory(),
	exporters:  tokensliexporter.NewFactory(),
	connectors: tokensliconnector.NewFactory(),
}

// topLevel are the keys of a configuration of the Collector.
var topLevel = []string{receivers, processors, exporters, connectors, "extensions", "service"}

func read(conf *confmap.Conf, selection string) (Config, error) {
	keys := conf.ToStringMap()
	switch {
	case len(keys) == 0:
		return Config{}, errors.New("the file is empty; it needs `slos` of token_latency, `objectives` of token_sli, or both")
	case slices.ContainsFunc(topLevel, func(key string) bool { return conf.IsSet(key) }):
		return readCollector(conf, selection)
	case selection != "":
		return Config{}, fmt.Errorf("#%s chooses a component, but the file has the settings at its top level; remove it", selection)
	default:
		return readFlat(keys)
	}
}

// readFlat reads settings of both kinds at the top level.
func readFlat(keys map[string]any) (Config, error) {
	latency, sli := factories[processors].CreateDefaultConfig(), factories[exporters].CreateDefaultConfig()
	ofLatency, ofSLI := map[string]any{}, map[string]any{}
	var errs settings.Problems
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case slices.Contains(settings.Keys(latency), key):
			ofLatency[key] = keys[key]
		case slices.Contains(settings.Keys(sli), key):
			ofSLI[key] = keys[key]
		default:
			errs = append(errs, fmt.Errorf("unknown key %q; valid keys: %s", key,
				strings.Join(slices.Concat(settings.Keys(latency), settings.Keys(new(keeper.Config))), ", ")))
		}
	}
	var config Config
	var ofFirst, ofSecond error
	config.Latency, _, ofFirst = decode(confmap.NewFromStringMap(ofLatency), latency)
	_, config.SLI, ofSecond = decode(confmap.NewFromStringMap(ofSLI), sli)
	return config, errors.Join(append(errs, ofFirst, ofSecond)...)
}

// readCollector reads the sections of the components in a configuration of the Collector.
func readCollector(conf *confmap.Conf, selection string) (Config, error) {
	var errs settings.Problems
	var latency sections[annotate.Config]
	var sli sections[keeper.Config]
	for _, key := range slices.Sorted(maps.Keys(conf.ToStringMap())) {
		errs.Unless(slices.Contains(topLevel, key), "unknown key %q beside sections of the Collector; valid keys: %s", key, strings.Join(topLevel, ", "))
	}
	for _, class := range slices.Sorted(maps.Keys(factories)) {
		all, err := conf.Sub(class)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, id := range idsOf(all, factories[class].Type()) {
			path := class + confmap.KeyDelimiter + id
			section, err := all.Sub(id)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			ofLatency, ofSLI, err := decode(section, factories[class].CreateDefaultConfig())
			if err != nil {
				errs = append(errs, inFile(path, err))
				continue
			}
			latency.add(path, ofLatency, true)
			sli.add(path, ofSLI, class == receivers || slices.ContainsFunc(settings.Keys(ofSLI), section.IsSet))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, err
	}
	return choose(latency, sli, selection)
}

// idsOf returns the components of a type, as the keys of a section have them.
func idsOf(conf *confmap.Conf, kind component.Type) (ids []string) {
	for _, key := range slices.Sorted(maps.Keys(conf.ToStringMap())) {
		var id component.ID
		if id.UnmarshalText([]byte(key)) == nil && id.Type() == kind {
			ids = append(ids, key)
		}
	}
	return ids
}

// settingsOf returns the settings of either kind that a component has.
func settingsOf(config component.Config) (latency *annotate.Config, sli *keeper.Config) {
	switch config := config.(type) {
	case *tokenlatencyprocessor.Config:
		return config, nil
	case *tokenstreamreceiver.Config:
		if series := config.Series.Get(); series != nil {
			sli = &series.Shared
		}
		return config.Latency.Get(), sli
	case *tokensliexporter.Config:
		return nil, &config.Shared
	case *tokensliconnector.Config:
		return nil, &config.Publish.Shared
	default:
		return nil, nil
	}
}

// decode decodes the settings of a component, and checks those of either kind. Others, such as the files of TLS, may
// be valid on the Collector's machine only.
func decode(conf *confmap.Conf, config component.Config) (latency *annotate.Config, sli *keeper.Config, err error) {
	// The Collector calls it, too, and adds lines to its errors.
	if err := config.(confmap.Unmarshaler).Unmarshal(conf); err != nil {
		return nil, nil, err
	}
	latency, sli = settingsOf(config)
	var errs settings.Problems
	if sli != nil {
		errs = sli.Problems()
	}
	return latency, sli, errors.Join(append(errs, confmap.Validate(latency), confmap.Validate(sli))...)
}
