// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each range of the header, and one that only the address has, shows the requests. The browser keeps the pages before for
// its Back button: if each held its connection, the sixth page would wait for ever.
func TestLivePage_ShowsEachRange(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	sendGlossaryRequests(t, c, 20)
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	names := evaluate[[]string](p, `[...document.querySelectorAll('[aria-label="Range"] button')].map(button => button.textContent)`)
	require.Equal(t, []string{"5m", "1h", "24h", "7d"}, names)
	for _, name := range append(names, "72h") {
		p.open(c.PageURL("?range=" + name))
		p.waitUntilLoaded()
		p.waitUntil(tpotTile + `.querySelector('.value').textContent.startsWith('16.7 ms')`)
		require.Equal(t, []string{"300 ms", "300 ms", "300 ms"}, evaluate[[]string](p, legend("time_to_first_token", "model-0")), name)
	}
}
