// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
)

// sender holds what follows from the attributes that the sender of a stream set.
type sender struct {
	attributes pcommon.Map
	spanName   string
	removed    int // attributes that senders must not set
}

// Senders caches what follows from the attributes of streams. It is safe for concurrent use.
type Senders = identity.Cache[sender]

// maxSenders is the number of senders in the cache, by the bytes of their attributes.
const maxSenders = 1 << 12

// NewSenders returns an empty cache.
func NewSenders() *Senders {
	return identity.New(nil, maxSenders, func(s *identity.Stream) *sender {
		attributes := pcommon.NewMap()
		removed := senderattributes.Put(attributes, s.Attributes) + senderattributes.Put(attributes, s.EndAttributes)
		return &sender{attributes, cmp.Or(source.SpanName(attributes), names.SourceTokenStream), removed}
	})
}
