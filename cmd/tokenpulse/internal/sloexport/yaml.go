// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// object is an object of Kubernetes, or one that looks like it.
type object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec"`
}

type metadata struct {
	Name        string `yaml:"name"`
	DisplayName string `yaml:"displayName,omitempty"` // of OpenSLO
}

// writeObjects writes a YAML stream with a document for each object.
func (e *Export) writeObjects(all []object) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	for _, one := range all {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	e.Text = text.Bytes()
	return nil
}
