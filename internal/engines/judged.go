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

// Judged notes whether the request of a span missed an objective, for the engines of all receivers of this process. The
// span names its engine as token_tap or token_stream does.
func Judged(own, resource pcommon.Map, slow bool) {
	if watches.Load() == 0 {
		return
	}
	now := Now()
	for _, name := range [...]string{address(own), InstanceOf(own, resource)} {
		if name == "" {
			continue
		}
		for _, of := range inprocess.Engines.All() {
			of.JudgeRequest(now, name, slow)
		}
	}
}

// address returns the host and port of the server, or "".
func address(own pcommon.Map) string {
	host := attributes.Text(own, names.ServerAddress)
	port, ok := own.Get(names.ServerPort)
	if host == "" || !ok {
		return ""
	}
	return Name(host, port.AsString())
}

// InstanceOf returns the name of the engine that an instance of a service is, which is a label, or "".
func InstanceOf(own, resource pcommon.Map) string {
	v, ok := attributes.LookUp(names.ServiceInstanceID, own, resource)
	if !ok {
		return ""
	}
	return names.CleanLabel(v.AsString())
}

// Name returns the name of the engine at an address, which is a label.
func Name(host, port string) string { return names.CleanLabel(net.JoinHostPort(host, port)) }
