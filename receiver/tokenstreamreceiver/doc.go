// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokenstreamreceiver receives the token events of streams over HTTP and gRPC, and
// emits finished streams as spans, as series or as both.
package tokenstreamreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
