package play

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A stream whose clock goes back must not take the others back with it.
func TestMergeNeverGoesBack(t *testing.T) {
	for name, live := range map[string]bool{"live": true, "whole streams": false} {
		t.Run(name, func(t *testing.T) {
			streams := Recorded(three())
			m := newMerge(&streams, live)
			last, events := int64(0), 0
			for at, more := m.peek(); more; at, more = m.peek() {
				require.GreaterOrEqual(t, at, last)
				last = at
				events += m.pop().Events()
			}
			require.Equal(t, 13, events)
		})
	}
}
