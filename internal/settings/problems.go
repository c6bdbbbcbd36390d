// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import "fmt"

// Problems holds the errors of a configuration found so far, so that one message reports them all.
type Problems []error

// Unless adds an error if a setting is not ok.
func (l *Problems) Unless(ok bool, format string, args ...any) {
	if !ok {
		*l = append(*l, fmt.Errorf(format, args...))
	}
}
