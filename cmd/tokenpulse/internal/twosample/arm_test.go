// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestArm_BlocksAreWidenedAtTheLimit(t *testing.T) {
	a := armOf(1, 5000, nil)
	require.LessOrEqual(t, len(a.blocks), maxBlocks)
	require.Greater(t, len(a.blocks), maxBlocks/2-1)
	// 5000 requests in 500 s.
	require.InDelta(t, 500*time.Second/maxBlocks, a.width, float64(500*time.Second/maxBlocks))
	total := a.total()
	require.Equal(t, uint64(5000), total.requests(bandOf(500)))
}

func TestArm_BlocksOfTimesFarApart(t *testing.T) {
	a, random := &Arm{}, rand.New(rand.NewPCG(1, 1))
	for i := range 2000 {
		r := request(random, i)
		r.Run = strconv.Itoa(i % maxRuns)
		r.Start = time.Unix(random.Int64N(1<<40)-1<<39, 0)
		a.Add(r)
	}
	require.LessOrEqual(t, len(a.blocks), maxBlocks)
	total := a.total()
	require.Equal(t, uint64(2000), total.requests(bandOf(500)))
}

func TestArm_RunsReplicasAndSLOsBeyondTheLimitAreCounted(t *testing.T) {
	for name, change := range map[string]func(i int, r *Request){
		"runs":     func(i int, r *Request) { r.Run = strconv.Itoa(i % (maxRuns + 1)) },
		"replicas": func(i int, r *Request) { r.Replica = strconv.Itoa(i % (maxReplicas + 1)) },
		"slos": func(i int, r *Request) {
			r.Verdicts = func(yield func(string, bool) bool) { yield(strconv.Itoa(i%(maxSLOs+1)), false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := armOf(1, 10*65*33, change)
			require.LessOrEqual(t, len(a.runs), maxRuns)
			require.LessOrEqual(t, len(a.replicas), maxReplicas)
			require.LessOrEqual(t, len(a.SLOs()), maxSLOs)
			require.Contains(t, []uint64{10 * 65, 10 * 33}, a.Folded())
			require.Equal(t, uint64(10*65*33), a.Requests())
			r := compare(t, a, armOf(2, 10*65*33, change), latencies)
			require.Equal(t, Equivalent, r.Verdict, r.Hint)
			require.Contains(t, fmt.Sprint(r.Warnings), "more than")
		})
	}
}

func TestArm_MergeEqualsAdd(t *testing.T) {
	run := func(name string) func(int, *Request) {
		return func(_ int, r *Request) {
			r.Run = name
			if name == "b" {
				r.Start = r.Start.Add(24 * time.Hour)
			}
		}
	}
	both, other := armOf(1, 1000, run("a")), rand.New(rand.NewPCG(2, 0))
	for i := range 3000 {
		r := request(other, i)
		run("b")(i, r)
		both.Add(r)
	}
	merged := armOf(1, 1000, run("a"))
	merged.Merge(armOf(2, 3000, run("b")))
	cand := armOf(3, 2000, nil)
	one, two := compare(t, both, cand, latencies), compare(t, merged, cand, latencies)
	require.Equal(t, one.Baseline, two.Baseline)
	for i := range one.Rows[:2] {
		require.InEpsilon(t, one.Rows[i].Ratio.Estimate, two.Rows[i].Ratio.Estimate, 1e-9)
	}
	// A run of the same name is another one.
	merged.Merge(armOf(4, 1000, run("a")))
	require.Equal(t, []string{"a", "b", "a (2)"}, merged.runNames.names)
	require.Equal(t, 3, merged.summary().Runs)
	require.Equal(t, SameRequests, compare(t, merged, armOf(4, 1000, nil), latencies).Reason)
}

func TestArm_MergeIntoAnEmptyOne(t *testing.T) {
	a := &Arm{}
	a.Merge(armOf(1, 1000, nil))
	require.Equal(t, armOf(1, 1000, nil).summary(), a.summary())
}

// Bands reach from a power of two to the next.
func TestBandOf(t *testing.T) {
	for tokens, name := range map[uint64]string{
		0: "unknown", 1: "1-128", 128: "1-128", 129: "129-256", 256: "129-256", 131072: "65537-131072", 131073: "131073+", math.MaxUint64: "131073+",
	} {
		require.Equal(t, name, bandNames[bandOf(tokens)])
	}
}

// All blocks and replicas have requests of all bands, whose latencies differ by a factor of thousand.
func TestMemory_OfAnArmIsBounded(t *testing.T) {
	heap := func() (bytes uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	a := armOf(1, 100_000, func(i int, r *Request) {
		r.PromptTokens, r.Replica = 1<<(i/64%19), strconv.Itoa(i%64)
		slowed(math.Pow(1000, float64(i%1009)/1009))(i, r)
	})
	after := heap()
	encoded, err := json.Marshal(a)
	require.NoError(t, err)
	t.Logf("%.1f MiB, %.1f MiB as JSON", float64(after-before)/(1<<20), float64(len(encoded))/(1<<20))
	require.Less(t, after-before, uint64(64<<20))
	require.Less(t, len(encoded), 16<<20)
	runtime.KeepAlive(a)
}

// BenchmarkArm_Add measures a request with three gaps.
func BenchmarkArm_Add(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	all := make([]*Request, 10000)
	for i := range all {
		all[i] = request(r, i)
		all[i].PromptTokens = 1 << r.IntN(18)
	}
	a := &Arm{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q := *all[i%len(all)]
		q.Start = epoch.Add(time.Duration(i) * time.Millisecond)
		a.Add(&q)
	}
}

func BenchmarkCompare(b *testing.B) {
	long := func(i int, r *Request) { r.PromptTokens = 1 << (i % 18) }
	base, cand := armOf(1, 100000, long), armOf(2, 100000, long)
	for b.Loop() {
		if _, err := Compare(base, cand, latencies); err != nil {
			b.Fatal(err)
		}
	}
}
