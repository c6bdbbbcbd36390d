// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokenstreamreceiver receives the token events of streams over HTTP and gRPC
// and emits one span per finished stream.
package tokenstreamreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
