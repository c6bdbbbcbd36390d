// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ports of FreeAddress are below those that Linux takes for outgoing connections and for
// servers that ask for any port. So neither takes one before the server of the test listens,
// or while that server restarts.
const (
	firstPort = 20_000
	ports     = 12_000
)

// given holds the addresses that FreeAddress returned.
var given sync.Map

// FreeAddress returns a loopback address on which nothing listens, each time another one.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	for range ports {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if _, again := given.LoadOrStore(address, true); again {
			continue
		}
		if listener, err := net.Listen("tcp", address); err == nil {
			require.NoError(tb, listener.Close())
			return address
		}
	}
	require.Fail(tb, "no free port")
	return ""
}
