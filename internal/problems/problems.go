// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package problems collects the errors of a configuration, so that one message reports
// them all.
package problems

import "fmt"

// List holds the errors found so far.
type List []error

// Unless adds an error if a setting is not ok.
func (l *List) Unless(ok bool, format string, args ...any) {
	if !ok {
		*l = append(*l, fmt.Errorf(format, args...))
	}
}
