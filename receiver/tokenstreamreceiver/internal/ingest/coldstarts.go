// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/coldstart"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
)

// ColdStarts decides which finished streams are cold. A nil one decides nothing.
type ColdStarts struct {
	*annotate.ColdStarts
	replicas *identity.Cache[annotate.Replica]
}

// NewColdStarts returns the cold starts that the settings of latency ask for, or nil.
func NewColdStarts(latency *annotate.Config) *ColdStarts {
	cold := annotate.NewColdStarts(latency)
	if cold == nil {
		return nil
	}
	return &ColdStarts{cold, identity.New(attributes.OfReplica, 2*coldstart.MaxReplicas, func(s *identity.Stream) *annotate.Replica {
		resource, own := pcommon.NewMap(), pcommon.NewMap()
		senderattributes.Put(resource, s.Resource)
		senderattributes.Put(own, s.Attributes)
		of := cold.ReplicaOf(own, resource, timeline.Vantage(s.Vantage).OrDefault())
		return &of
	})}
}

// decide is called with all streams, since those that become no span are requests of a replica, too.
func (c *ColdStarts) decide(finished []assembly.Finished) {
	if c == nil {
		return
	}
	finder := c.replicas.NewFinder()
	for i := range finished {
		s := &finished[i]
		of := finder.Find(byte(s.Start.Vantage), s.Resource, s.Attributes, s.EndAttributes())
		s.Cold = of != nil && c.Cold(*of, s.Start.UnixNano, s.EndUnixNano())
	}
}
