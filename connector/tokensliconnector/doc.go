// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokensliconnector turns the token latency of LLM requests into OpenTelemetry metrics
// for a metrics pipeline, and into log events of breached SLOs for a logs pipeline.
package tokensliconnector

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
