// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/tokenpulse/tokenpulse/internal/numbers"

// byAttribute holds the numbers by their attributes.
var byAttribute = func() map[string]numbers.ID {
	all := map[string]numbers.ID{}
	for id := range numbers.Count {
		all[id.Attribute()] = id
	}
	return all
}()
