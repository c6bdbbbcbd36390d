// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package keeper holds what the token_sli exporter and connector share: configuration,
// self-metrics, and the life of their series and error budgets.
package keeper

//go:generate go tool -modfile=../tools/go.mod mdatagen metadata.yaml
