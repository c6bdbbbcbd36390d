// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"net"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// watches is the number of started ones. Without any, a judged span costs nothing more.
var watches atomic.Int32

// Judged notes whether the request of an annotated span missed an objective, for the engine that served it, in all
// receivers of this process. They name engines as attributes.Replica does.
func Judged(own, resource pcommon.Map, slow bool) {
	if watches.Load() == 0 {
		return
	}
	name := attributes.Replica(attributes.Text(own, names.Vantage), func(name string) string { return attributes.Label(name, own, resource) })
	if name == "" {
		return
	}
	now := Now()
	for _, of := range inprocess.Engines.All() {
		of.JudgeRequest(now, name, slow)
	}
}

// Name returns the name of the engine at an address, which is a label.
func Name(host, port string) string { return names.CleanLabel(net.JoinHostPort(host, port)) }
