// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation

const slowdown = 1
