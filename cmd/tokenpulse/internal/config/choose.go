// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

// sections are settings of a kind by the paths of their components, such as processors::token_latency/chat.
type sections[T any] []section[T]

type section[T any] struct {
	path     string
	settings *T
	// set is false of the defaults of a component that has none of these settings, such as an exporter with its endpoint.
	set bool
}

func (s *sections[T]) add(path string, settings *T, set bool) {
	if settings != nil {
		*s = append(*s, section[T]{path, settings, set})
	}
}

func (s *sections[T]) paths() (paths []string) {
	for _, one := range *s {
		paths = append(paths, one.path)
	}
	return paths
}

// chosen returns those that a selection, such as token_latency/chat,token_sli/chat, names.
func (s *sections[T]) chosen(selection string) (chosen sections[T]) {
	for _, one := range *s {
		_, id, _ := strings.Cut(one.path, confmap.KeyDelimiter)
		_, name, _ := strings.Cut(id, "/")
		if slices.ContainsFunc(strings.Split(selection, ","), func(s string) bool { return s == one.path || s == id || s != "" && s == name }) {
			chosen = append(chosen, one)
		}
	}
	return chosen
}

// choose returns the settings of each kind: the only ones, those that the selection names, or the defaults.
func choose(latency sections[annotate.Config], sli sections[keeper.Config], selection string) (Config, error) {
	config := Default()
	all := slices.Concat(latency.paths(), sli.paths())
	if len(all) == 0 {
		return Config{}, errors.New("no section token_latency or token_sli; add one, or use a file with `slos` and `objectives` at its top level")
	}
	if selection != "" && len(latency.chosen(selection))+len(sli.chosen(selection)) == 0 {
		return Config{}, fmt.Errorf("no component is named %s; choose one of %s", selection, strings.Join(all, ", "))
	}
	var ofLatency, ofSLI error
	config.Latency, ofLatency = latency.one("token_latency", config.Latency, selection)
	config.SLI, ofSLI = sli.one("token_sli", config.SLI, selection)
	return config, errors.Join(ofLatency, ofSLI)
}

// one returns the settings that the selection names or, if it names none of the kind, the only ones that are set.
func (s *sections[T]) one(kind string, defaults *T, selection string) (*T, error) {
	left := s.chosen(selection)
	if len(left) == 0 {
		left = slices.DeleteFunc(slices.Clone(*s), func(one section[T]) bool { return !one.set })
	}
	switch {
	case len(left) == 0:
		return defaults, nil
	case len(left) == 1:
		return left[0].settings, nil
	default:
		return nil, fmt.Errorf("settings of %s are in %s; choose by #ID after the name of the file, such as #%s",
			kind, strings.Join(left.paths(), ", "), strings.TrimPrefix(selection+","+left[0].path, ","))
	}
}
