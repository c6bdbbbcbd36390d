// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parts of earlier batches are reused.
func TestBatchPart_ReturnsThePartOfTheID(t *testing.T) {
	var ids []string
	for i := range 1500 {
		ids = append(ids, strconv.Itoa(i), fmt.Sprintf("request-%d-of-a-service", i))
	}
	for length := 1; length <= MaxIDBytes; length++ {
		ids = append(ids, strings.Repeat("x", length))
	}
	random := rand.New(rand.NewPCG(1, 2))
	store, _ := newStore(Limits{MaxStreams: len(ids), MaxChunksPerStream: 10, MaxStreamBytes: 1 << 10, MaxMemory: 1 << 20})
	batch := store.NewBatch()
	for _, size := range []int{500, 1, 0, 2, 3000, 800, 1} {
		requests := map[string]int{}
		for range size {
			id := ids[random.IntN(len(ids))]
			for _, id := range []string{id, ids[random.IntN(10)], id} {
				part, err := batch.Part([]byte(id))
				require.NoError(t, err)
				require.Equal(t, id, part.ID)
				require.Equal(t, requests[id], part.Units, "the same part as before")
				part.Count(0)
				requests[id]++
			}
		}
		require.Equal(t, len(requests), batch.used)
		for _, id := range []string{"", strings.Repeat("x", MaxIDBytes+1)} {
			_, err := batch.Part([]byte(id))
			require.Error(t, err)
		}
		batch.Reset()
	}
}
