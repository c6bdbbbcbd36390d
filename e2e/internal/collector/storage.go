// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Committed returns the number of the last transaction in a storage file. The file is a bbolt
// database: each of its first two pages has the number of the transaction that wrote it after a
// header of 16 bytes and 48 more bytes.
func Committed(t *testing.T, file string) (transactions uint64) {
	t.Helper()
	open, err := os.Open(file)
	require.NoError(t, err)
	defer open.Close()
	for page := range 2 {
		var number [8]byte
		_, err = open.ReadAt(number[:], int64(page*os.Getpagesize()+16+48))
		require.NoError(t, err)
		transactions = max(transactions, binary.NativeEndian.Uint64(number[:]))
	}
	return transactions
}

// WaitForCommit waits until a storage file holds a transaction.
func WaitForCommit(t *testing.T, file string, transaction uint64) {
	t.Helper()
	require.Eventually(t, func() bool { return Committed(t, file) >= transaction }, 4*Patience, 50*time.Millisecond, "%s is not written", file)
}
