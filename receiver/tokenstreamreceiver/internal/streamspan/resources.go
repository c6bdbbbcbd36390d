// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"crypto/sha256"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
)

// resources groups the spans of a request by resource. A large resource may be shared by
// a hundred thousand streams that arrive in ten bytes each, so the content of a shared
// one is read once.
type resources struct {
	traces   ptrace.Traces
	shared   map[sharedResource]*resource
	byDigest map[[sha256.Size]byte]*resource
	digests  int // number of computed digests
	removed  int // number of attributes that senders must not set
	service  string
}

// sharedResource identifies the memory of an encoded resource.
type sharedResource struct {
	data   *byte
	length int
}

type resource struct {
	digest  [sha256.Size]byte
	encoded []byte

	// Set with the first span.
	attributes pcommon.Map
	spans      ptrace.SpanSlice
	used       bool
}

// newResources returns an empty group. service is the name of the service in resources without one.
func newResources(service string) *resources {
	return &resources{
		service:  service,
		traces:   ptrace.NewTraces(),
		shared:   map[sharedResource]*resource{},
		byDigest: map[[sha256.Size]byte]*resource{},
	}
}

// of returns the resource of an encoded KeyValueList, which must not change any more.
func (r *resources) of(encoded []byte) *resource {
	key := sharedResource{length: len(encoded)}
	if len(encoded) > 0 {
		key.data = &encoded[0]
	}
	if known, ok := r.shared[key]; ok {
		return known
	}
	digest := sha256.Sum256(encoded)
	r.digests++
	same, ok := r.byDigest[digest]
	if !ok {
		same = &resource{digest: digest, encoded: encoded}
		r.byDigest[digest] = same
	}
	r.shared[key] = same
	return same
}

// PutResource writes the attributes of a resource, and the name of its service if it has none. It returns
// the number of attributes that it left out, as senderattributes.Put does.
func PutResource(attributes pcommon.Map, encoded []byte, service string) (removed int) {
	removed = senderattributes.Put(attributes, encoded)
	if name, exists := attributes.GetOrPutEmpty(names.ServiceName); !exists {
		name.SetStr(service)
	}
	return removed
}

// addSpan appends an empty span to those of a resource.
func (r *resources) addSpan(to *resource) ptrace.Span {
	if !to.used {
		spans := r.traces.ResourceSpans().AppendEmpty()
		to.attributes = spans.Resource().Attributes()
		r.removed += PutResource(to.attributes, to.encoded, r.service)
		scope := spans.ScopeSpans().AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		to.spans, to.used = scope.Spans(), true
	}
	return to.spans.AppendEmpty()
}
