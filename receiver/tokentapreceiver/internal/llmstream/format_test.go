// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The answer alone shows which of several formats with a path it is of, and the request's body whether it is one for an LLM.
func TestFormats_SharePathsOnlyIfTheyAreRecognised(t *testing.T) {
	for _, f := range formats {
		if !slices.ContainsFunc(f.paths, func(rule pathRule) bool { return rule.shared }) {
			continue
		}
		require.True(t, len(f.marks) > 0 || f.shape != nil || f.guess != nil || f.plainText != nil,
			"%s has a path with shared: true, so the path does not decide: give it marks, a shape or a guess, which recognise its first object", f.name)
		require.NotNil(t, f.asks, "%s has a path with shared: true: give it asks, which recognises the body of a request", f.name)
	}
}

// A request has no members but these for asks. Which of them asks reads depends on its order.
func TestFormats_AskForMembersThatAreRead(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		if f.asks == nil {
			continue
		}
		for range 100 {
			f.asks(func(name string) bool {
				require.True(t, formatMembers[name], "asks of %s reads %s: add it to formatMembers", f.name, name)
				return random.IntN(2) == 0
			})
		}
	}
}

func TestFormats_ShapesReadHints(t *testing.T) {
	for _, f := range formats {
		require.Equal(t, f.shape != nil || f.guess != nil, len(f.hints) > 0,
			"%s: shape and guess get the members of the first object that hints lists, and no others", f.name)
	}
}

// A mark of two formats would show the later one.
func TestFormats_HaveMarksAndNamesOfTheirOwn(t *testing.T) {
	marks, names := map[string]Format{}, map[Format]bool{}
	for _, f := range formats {
		require.False(t, names[f.name], "%s is in the list twice", f.name)
		names[f.name] = true
		for mark := range f.marks {
			require.Empty(t, marks[mark], "the mark %s of %s is another format's, too: use a shape", mark, f.name)
			marks[mark] = f.name
		}
	}
}
