// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokentapreceiver is a reverse proxy for LLM services. It forwards requests and
// answers unchanged, and emits one span per exchange with the arrival of each token.
package tokentapreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
