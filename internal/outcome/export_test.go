// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

// Known returns the number of finish reasons in the table.
func Known() int { return len(reasons) }
