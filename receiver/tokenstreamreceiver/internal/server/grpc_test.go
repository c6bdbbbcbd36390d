// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
)

// gRPC's default pool would take 1 MiB, of which only the message counts.
func TestMemory_BufferOfMessageIsAtMostTwiceItsSize(t *testing.T) {
	for _, size := range []int{5 << 10, 33 << 10, 100 << 10, 1<<20 + 1} {
		frames := mem.BufferSlice{mem.SliceBuffer(make([]byte, size/2)), mem.SliceBuffer(make([]byte, size-size/2))}
		var message rawMessage
		require.NoError(t, rawCodec{}.Unmarshal(frames, &message))
		require.Equal(t, size, message.Len())
		require.LessOrEqual(t, cap(message.ReadOnlyData()), 2*size)
		message.Free()
	}
}
