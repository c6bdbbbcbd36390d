// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"net"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// OfReplica are the attributes that Replica asks for.
var OfReplica = []string{names.ServiceInstanceID, names.ServerAddress, names.ServerPort, k8sPodName, hostName}

const (
	k8sPodName = "k8s.pod.name"
	hostName   = "host.name"
)

// Replica returns the name of the replica that served a request, as it is known at a vantage, or "". value returns an
// attribute of the request or else of its resource, or "".
//
// A server or an engine is the replica, and names itself. A client or a gateway knows the address that it called: its
// other attributes name the client or the gateway.
func Replica(vantage string, value func(name string) string) string {
	address := value(names.ServerAddress)
	if port := value(names.ServerPort); address != "" && port != "" {
		address = net.JoinHostPort(address, port)
	}
	if vantage == timeline.VantageClient.String() || vantage == timeline.VantageGateway.String() {
		return address
	}
	if instance := value(names.ServiceInstanceID); instance != "" {
		return instance
	}
	if address != "" {
		return address
	}
	if pod := value(k8sPodName); pod != "" {
		return pod
	}
	return value(hostName)
}

// Label returns an attribute of a span or of its resource, as labels have it, or "".
func Label(name string, own, resource pcommon.Map) string {
	v, ok := LookUp(name, own, resource)
	if !ok {
		return ""
	}
	return names.CleanLabel(v.AsString())
}
