// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func saveAndLoad(t *testing.T, a *Arm) *Arm {
	t.Helper()
	encoded, err := json.Marshal(a)
	require.NoError(t, err)
	var loaded Arm
	require.NoError(t, json.Unmarshal(encoded, &loaded))
	return &loaded
}

func TestSaved_ComparesLikeTheRequests(t *testing.T) {
	change := func(i int, r *Request) {
		longer(0.3)(i, r)
		r.Unsuccessful = oneIn(60, i)
		if i > 2000 {
			r.Run = "second"
		}
	}
	base, cand := armOf(1, 4000, change), armOf(2, 4000, longer(0.6))
	q := latencies
	q.SLOs = []string{"all"}
	require.Equal(t, compare(t, base, cand, q), compare(t, saveAndLoad(t, base), saveAndLoad(t, cand), q))
	again := saveAndLoad(t, base)
	require.Equal(t, SameRequests, compare(t, base, again, q).Reason)
	again.Add(request(rand.New(rand.NewPCG(1, 1)), 1))
	require.Equal(t, uint64(4001), again.Requests())
}

func TestSaved_EmptyArm(t *testing.T) {
	require.Zero(t, saveAndLoad(t, &Arm{}).Requests())
}

func TestSaved_DamagedIsAnErrorThatNamesThePlace(t *testing.T) {
	encoded, err := json.Marshal(armOf(1, 500, nil))
	require.NoError(t, err)
	for _, c := range []struct{ from, to, message string }{
		{`"version":1`, `"version":2`, "its version is 2, and this build reads version 1"},
		{`"block_nanoseconds":`, `"block_nanoseconds":7`, "no power of two"},
		{`"slos":["all"]`, `"slos":["all","all"]`, `slo "all" is there twice`},
		{`"requests":500`, `"requests":501`, `run "" has 501 requests, and its blocks have 500`},
		{`"name":"1"`, `"name":"2"`, `replica "2" is there twice`},
		{`"prompts":"257-512"`, `"prompts":"300"`, `block 0: prompts "300" is no range`},
		{`"unsuccessful":0`, `"unsuccessful":1000`, "of which 1000 are unsuccessful"},
		{`"bad":0`, `"bad":100`, "and 100 bad"},
		{`"histogram":"AQ`, `"histogram":"AA`, "histogram has"},
		{`"run":0`, `"run":1`, "block 0 is of an unknown run"},
	} {
		damaged := strings.Replace(string(encoded), c.from, c.to, 1)
		require.NotEqual(t, string(encoded), damaged, c.from)
		var a Arm
		err := json.Unmarshal([]byte(damaged), &a)
		require.ErrorContains(t, err, "save the report again")
		if c.from != `"histogram":"AQ` {
			require.ErrorContains(t, err, c.message)
		}
		require.Zero(t, a.Requests())
	}
}

// What can be decoded can be compared, and encoded again.
func FuzzSaved(f *testing.F) {
	for _, n := range []int{0, 1, 300} {
		encoded, err := json.Marshal(armOf(1, n, longer(0.5)))
		require.NoError(f, err)
		f.Add(encoded)
	}
	cand := armOf(2, 300, longer(0.4))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var a Arm
		if json.Unmarshal(encoded, &a) != nil {
			return
		}
		require.LessOrEqual(t, len(a.blocks), maxBlocks)
		for _, arms := range [][2]*Arm{{&a, cand}, {cand, &a}} {
			r, err := Compare(arms[0], arms[1], latencies)
			require.NoError(t, err)
			_, err = json.Marshal(r)
			require.NoError(t, err)
		}
		again := saveAndLoad(t, &a)
		require.Equal(t, a.requests, again.requests)
	})
}
