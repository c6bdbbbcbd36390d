// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokensliexporter serves the token latency of LLM requests as Prometheus metrics, and on
// a live page. It reads annotated spans, or series that other components send as metrics.
package tokensliexporter

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
