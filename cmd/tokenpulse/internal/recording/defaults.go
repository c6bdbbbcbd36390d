// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"maps"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Defaults are values for attributes that a recording lacks. An empty one is not
// added.
type Defaults struct {
	Service, Model, Provider string
}

// Apply adds the defaults to streams that lack the attribute.
func (d Defaults) Apply(streams []*stream.Stream) {
	resources := map[*stream.Resource]*stream.Resource{}
	for _, s := range streams {
		filled, ok := resources[s.Resource]
		if !ok {
			filled = &stream.Resource{Attributes: fill(s.ResourceAttributes(), names.ServiceName, d.Service)}
			resources[s.Resource] = filled
		}
		s.Resource = filled
		s.Attributes = fill(s.Attributes, names.GenAIRequestModel, d.Model)
		s.Attributes = fill(s.Attributes, names.GenAIProviderName, d.Provider)
	}
}

// fill returns the attributes with the key added, if they lack it. It copies the map,
// because streams may share it.
func fill(attributes stream.Attributes, key, value string) stream.Attributes {
	if _, ok := attributes[key]; ok || value == "" {
		return attributes
	}
	filled := stream.Attributes{key: value}
	maps.Copy(filled, attributes)
	return filled
}
