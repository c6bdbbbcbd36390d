// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package testenv

// RaceSlowdown is about how much longer a test takes because of the race detector, or 1 without it.
const RaceSlowdown = 8
