// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package vantage names the observers whose clock a request's times come from.
package vantage

// Vantage is the observer of a request. The values equal those of the wire schema.
type Vantage uint8

// The observers, from the application that sends a request to the engine that
// generates its tokens. A sender that leaves the vantage out means Server.
const (
	Unspecified Vantage = iota
	Client
	Gateway
	Server
	Engine
)

var names = [...]string{Client: "client", Gateway: "gateway", Server: "server", Engine: "engine"}

// Parse returns the vantage that a name stands for. The empty name is Unspecified.
// ok is false for an unknown name.
func Parse[T string | []byte](name T) (v Vantage, ok bool) {
	for v, known := range names {
		if string(name) == known {
			return Vantage(v), true
		}
	}
	return Unspecified, false
}

// String returns the name, and "" for Unspecified and unknown values.
func (v Vantage) String() string {
	if !v.Valid() {
		return ""
	}
	return names[v]
}

// Valid reports whether v is one of the constants above.
func (v Vantage) Valid() bool { return int(v) < len(names) }

// OrDefault returns v, or Server if v is Unspecified.
func (v Vantage) OrDefault() Vantage {
	if v == Unspecified {
		return Server
	}
	return v
}
