// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

// Vantage is the observer of a request. The values equal those of the wire schema.
type Vantage uint8

// The observers, from the application that sends a request to the engine that
// generates its tokens. A sender that leaves the vantage out means VantageServer.
const (
	VantageUnspecified Vantage = iota
	VantageClient
	VantageGateway
	VantageServer
	VantageEngine
)

var vantageNames = [...]string{VantageClient: "client", VantageGateway: "gateway", VantageServer: "server", VantageEngine: "engine"}

// ParseVantage returns the vantage that a name stands for. The empty name is VantageUnspecified.
// ok is false for an unknown name.
func ParseVantage[T string | []byte](name T) (v Vantage, ok bool) {
	for v, known := range vantageNames {
		if string(name) == known {
			return Vantage(v), true
		}
	}
	return VantageUnspecified, false
}

// String returns the name, and "" for VantageUnspecified and unknown values.
func (v Vantage) String() string {
	if !v.Valid() {
		return ""
	}
	return vantageNames[v]
}

// Valid reports whether v is one of the constants above.
func (v Vantage) Valid() bool { return int(v) < len(vantageNames) }

// OrDefault returns v, or VantageServer if v is VantageUnspecified.
func (v Vantage) OrDefault() Vantage {
	if v == VantageUnspecified {
		return VantageServer
	}
	return v
}
