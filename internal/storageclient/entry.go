// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package storageclient

import (
	"crypto/sha256"
	"encoding/hex"
)

// Entry returns the storage key of a value that a text of any length identifies, such as the key of a series.
func Entry(prefix string, identity []byte) string {
	sum := sha256.Sum256(identity)
	return prefix + "/" + hex.EncodeToString(sum[:16])
}
