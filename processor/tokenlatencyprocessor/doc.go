// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package tokenlatencyprocessor derives latency from the token timings of a model call, writes it
// on the call's span, and judges SLOs. With join, roll_up and phases, it works across the spans
// of a trace.
package tokenlatencyprocessor
