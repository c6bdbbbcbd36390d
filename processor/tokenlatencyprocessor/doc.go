// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package tokenlatencyprocessor derives latency from the token timings of a model call and writes it
// on the call's span.
package tokenlatencyprocessor
