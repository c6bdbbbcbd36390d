// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// slowdown is how much longer a seed takes with the race detector.
const slowdown = 8
