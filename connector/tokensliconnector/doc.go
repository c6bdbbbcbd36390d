// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokensliconnector turns the latencies of language model requests into
// OpenTelemetry metrics for any metrics pipeline.
package tokensliconnector

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
