// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamseries

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
)

// streamIdentity is what follows from the attributes and the vantage of a stream.
type streamIdentity struct {
	// values are those of the dimensions, without bands of numbers, and of the attributes of conventions.
	values  []string
	vantage string
	// series is nil if a dimension has bands of a number that differs from request to request.
	series *series.Handle
	rules  *judge.Rules
	// onSpan means that the stream is recorded by way of a span: its attributes report token
	// counts, or a dimension is a number of the request.
	onSpan bool
	// removed and removedFromResource are the attributes that senders must not set.
	removed, removedFromResource int
	// status is the HTTP status that the attributes report, or 0.
	status int
	// unusable is the number of token counts whose value has the wrong type or form.
	unusable int64
	// choices is the number of answers that the request asked for, or 0.
	choices int64
	// streamAsked means that the request asked for a stream.
	streamAsked bool
}

// identities is the number of identities in the cache, unless there may be more than half as many
// series. An identity takes about a kilobyte, or less than ten with the largest attributes that are
// cached.
const identities = 1 << 13

// newIdentities returns the cache of identities.
func (r *Recorder) newIdentities(config *keeper.Config) *identity.Cache[streamIdentity] {
	read := slices.Concat(config.Series.Dimensions.Attributes(), config.Conventions.AttributesRead(), r.latency.AttributesRead(), []string{names.HTTPResponseStatusCode, names.ErrorType})
	for _, standard := range [...]names.Standard{
		names.OperationName, names.ProviderName, names.RequestModel,
		names.InputTokens, names.OutputTokens, names.ReasoningTokens, names.CacheReadInputTokens,
		names.CacheWriteInputTokens, names.Streaming, names.FinishReasons, names.ChoiceCount, names.AudioOutputTokens,
	} {
		read = append(read, names.Aliases[standard]...)
	}
	return identity.New(read, max(identities, 2*config.Series.MaxSeries), r.resolve)
}

// resolve derives the identity from the span that a stream without events would become, so
// that spans and series agree about every attribute.
func (r *Recorder) resolve(s *identity.Stream) *streamIdentity {
	stream := assembly.Finished{
		Stream: &assembly.Stream{
			Resource: s.Resource, Attributes: s.Attributes,
			Start: assembly.Start{UnixNano: 1, Vantage: timeline.Vantage(s.Vantage)},
		},
		End: &assembly.End{Cancelled: true}, // an end that gives the span no error.type
	}
	w := r.workers.Get().(*worker)
	defer r.workers.Put(w)
	span, resource, removed := w.annotated(stream)
	id := &streamIdentity{removed: removed, onSpan: r.onSpan}
	for _, alias := range names.Aliases[names.FinishReasons] { // they may decide on the outcome
		_, reported := span.Attributes().Get(alias)
		id.onSpan = id.onSpan || reported
	}
	for _, count := range numbers.Usage { // attributes of the sender have precedence over the usage of the stream
		_, reported := span.Attributes().Get(count.Attribute())
		id.onSpan = id.onSpan || reported
	}
	span.Attributes().RemoveIf(func(name string, _ pcommon.Value) bool {
		return strings.HasPrefix(name, names.Prefix) && isOfRequest(name)
	})
	id.status = attributes.Status(span.Attributes())
	id.rules = r.rules.Bind(span.Attributes(), resource)

	id.values = r.dimensions.Values()
	for _, all := range [...]pcommon.Map{resource, span.Attributes()} {
		for name, v := range all.All() {
			r.dimensions.Read(id.values, name, v)
		}
	}
	request := r.dimensions.Request(id.values)
	r.dimensions.Clean(&request)
	vantage, _ := span.Attributes().Get(names.Vantage)
	id.vantage = vantage.Str()
	request.Vantage = id.vantage
	if !r.dimensions.HasBands() {
		id.series = series.NewHandle(&request)
	}
	if len(s.Resource) > 0 {
		id.removedFromResource = removedFrom(s.Resource)
		id.removed -= id.removedFromResource
	}
	observed := observe(span.Attributes())
	id.unusable, id.streamAsked, id.choices = observed.Unusable, observed.Request.StreamAsked, observed.Request.Choices
	return id
}

// observe returns what the attributes of a stream report. It removes times to first chunk, in which
// streams with the same identity may differ.
func observe(attributes pcommon.Map) *source.Observation {
	attributes.RemoveIf(func(name string, _ pcommon.Value) bool {
		return slices.Contains(names.Aliases[names.TimeToFirstChunk], name)
	})
	return new(source.Observer).ObserveTokenStream(&source.TokenStream{Timeline: new(timeline.Timeline)}, attributes)
}

// dependsOnRequest reports whether a dimension differs between streams with equal attributes in a way that
// spanreader.Dimensions.SetBands does not cover, or an attribute that an SLO reads in one that judge.Rules.Bind does not.
func dependsOnRequest(dimensions series.Dimensions, ofSLOs []string) bool {
	differs := func(d series.Dimension) bool {
		_, covered := spanreader.BandedNumber(&d)
		// A time to first chunk is filled in from other attributes, if it fits into the request.
		return !covered && isOfRequest(d.Attribute) || d.Attribute == names.GenAITimeToFirstChunk
	}
	return slices.ContainsFunc(dimensions, differs) || slices.Contains(ofSLOs, names.GenAITimeToFirstChunk)
}

// isOfRequest reports whether an attribute differs between streams with equal attributes and
// vantage.
func isOfRequest(name string) bool {
	return judge.IsOfRequest(name) && name != names.Vantage && name != names.Source
}

// removedFrom returns the number of attributes that senders must not set.
func removedFrom(list []byte) int { return senderattributes.Put(pcommon.NewMap(), list) }
