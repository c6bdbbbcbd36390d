// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"crypto/sha256"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
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
}

// sharedResource identifies the memory of an encoded resource.
type sharedResource struct {
	data   *byte
	length int
}

type resource struct {
	digest     [sha256.Size]byte
	attributes pcommon.Map
	spans      ptrace.SpanSlice
}

func newResources() *resources {
	return &resources{
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
		same = r.add(digest, encoded)
	}
	r.shared[key] = same
	return same
}

func (r *resources) add(digest [sha256.Size]byte, encoded []byte) *resource {
	spans := r.traces.ResourceSpans().AppendEmpty()
	r.removed += putSenderAttributes(spans.Resource().Attributes(), encoded)
	scope := spans.ScopeSpans().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	added := &resource{digest: digest, attributes: spans.Resource().Attributes(), spans: scope.Spans()}
	r.byDigest[digest] = added
	return added
}
