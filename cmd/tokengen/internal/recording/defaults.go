package recording

import (
	"maps"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Defaults name what a recording leaves out. An empty one adds nothing.
type Defaults struct {
	Service, Model, Provider string
}

// Apply adds the defaults where the streams' own attributes lack them.
func (d Defaults) Apply(streams []*stream.Stream) {
	resources := map[*stream.Resource]*stream.Resource{}
	for _, s := range streams {
		filled, ok := resources[s.Resource]
		if !ok {
			filled = &stream.Resource{Attributes: fill(resourceOf(s), names.ServiceName, d.Service)}
			resources[s.Resource] = filled
		}
		s.Resource = filled
		s.Attributes = fill(s.Attributes, names.GenAIRequestModel, d.Model)
		s.Attributes = fill(s.Attributes, names.GenAIProviderName, d.Provider)
	}
}

func resourceOf(s *stream.Stream) stream.Attributes {
	if s.Resource == nil {
		return nil
	}
	return s.Resource.Attributes
}

// fill returns the attributes with the value where they lack the key. It leaves
// the given map alone, for streams may share it.
func fill(attributes stream.Attributes, key, value string) stream.Attributes {
	if _, ok := attributes[key]; ok || value == "" {
		return attributes
	}
	filled := stream.Attributes{key: value}
	maps.Copy(filled, attributes)
	return filled
}
