// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/identity"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/senderattributes"
)

// keepEngines is how long an engine without streams is kept. The names of replicas change with each deployment.
const keepEngines = time.Hour

// watchEngines judges whether the engines of the store's streams produce tokens, each by the service.instance.id of its
// streams. Those of clients and gateways have their own instance there.
func watchEngines(cfg *engines.Config, store *assembly.Store, logger *zap.Logger) *engines.Watch {
	watch := engines.New(cfg, liveness.Limits{Keep: keepEngines}, nil, logger)
	instances := identity.New([]string{names.ServiceInstanceID}, 2*cfg.MaxEngines, instanceOf)
	store.WatchEngines(func(s *assembly.Stream) *liveness.Engine {
		if vantage := s.Start.Vantage.OrDefault(); vantage != timeline.VantageServer && vantage != timeline.VantageEngine {
			return nil
		}
		finder := instances.NewFinder()
		name := finder.Find(0, s.Resource, s.Attributes, nil)
		if name == nil || *name == "" {
			return nil
		}
		return watch.Find(*name)
	})
	return watch
}

// ownEngines returns the engines of this receiver.
func (r *tokenStreamReceiver) ownEngines() []liveness.Status {
	if r.engines == nil {
		return nil
	}
	return r.engines.Statuses()
}

// instanceOf returns the name of the engine that generates a stream.
func instanceOf(s *identity.Stream) *string {
	resource, own := pcommon.NewMap(), pcommon.NewMap()
	senderattributes.Put(resource, s.Resource)
	senderattributes.Put(own, s.Attributes)
	name := attributes.Label(names.ServiceInstanceID, own, resource)
	return &name
}
