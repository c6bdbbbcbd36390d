// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type owner struct{ _ int } // pointers to values without a size may be equal

func TestRegistry_HoldsTheLastValueOfEachOwnerUntilItIsRemoved(t *testing.T) {
	var r Registry[string]
	a, b := new(owner), new(owner)
	r.Remove(a)
	require.Empty(t, r.All())
	r.Set(a, "old")
	r.Set(b, "same")
	r.Set(a, "same")
	require.Equal(t, []string{"same", "same"}, r.All(), "one of each owner")
	r.Remove(a)
	r.Remove(a)
	require.Equal(t, []string{"same"}, r.All(), "the value of the other owner stays")
	r.Set(a, "restarted")
	require.ElementsMatch(t, []string{"same", "restarted"}, r.All())
	require.ElementsMatch(t, []string{"same", "restarted"}, r.Take())
	require.Empty(t, r.All(), "they are taken")
}

func TestRegistry_ComponentsThatStartAndStopTogetherLeaveNothing(t *testing.T) {
	var r Registry[int]
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			component := new(owner)
			for range 200 {
				r.Set(component, i)
				assert.Contains(t, r.All(), i)
				r.Remove(component)
			}
		})
	}
	all.Wait()
	require.Empty(t, r.All())
}
