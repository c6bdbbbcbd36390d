package assembly

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A batch's parts are those of the ids asked for, whatever was asked for before, in
// this batch and in earlier ones: there are more ids than slots to remember parts in.
func TestPartsAreThoseOfTheirIDs(t *testing.T) {
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
		asked := map[string]int{}
		for range size {
			id := ids[random.IntN(len(ids))]
			for _, id := range []string{id, ids[random.IntN(10)], id} {
				part, err := batch.Part([]byte(id))
				require.NoError(t, err)
				require.Equal(t, id, part.ID)
				require.Equal(t, asked[id], part.Units, "another part was asked for before")
				part.Count(0)
				asked[id]++
			}
		}
		require.Equal(t, len(asked), batch.used)
		for _, id := range []string{"", strings.Repeat("x", MaxIDBytes+1)} {
			_, err := batch.Part([]byte(id))
			require.Error(t, err)
		}
		batch.Reset()
	}
}

// Ids that a service makes one after another do not share slots: not more than by
// chance, which is one of twenty for fifty of a thousand.
func TestStreamsHaveSlotsOfTheirOwn(t *testing.T) {
	for _, format := range []string{"%d", "stream-%d", "benchmark-%04d", "%08x", "%d-of-service", "gateway-%08d-eu-west-1", "chatcmpl-%024x", "3fa85f64-5717-4562-b3fc-%012x"} {
		var recent recentParts
		slots := map[*uint32]bool{}
		for i := range 50 {
			slots[recent.slot(fmt.Appendf(nil, format, i))] = true
		}
		require.Greater(t, len(slots), 40, format)
	}
}
