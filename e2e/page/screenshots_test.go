// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Writes screenshots of the whole page to .cache/screenshots, for review of a change of the page.
func TestLivePage_ScreenshotsAtThreeWidthsInBothThemes(t *testing.T) {
	t.Parallel()
	c := startPageCollector(t)
	for seed := range 4 {
		sendBurst(t, c, 120, "--seed", strconv.Itoa(seed))
		time.Sleep(3 * time.Second)
	}
	p := openTab(t, c.PageURL(""))
	p.waitUntilLoaded()
	for _, width := range []int64{390, 1280, 2560} {
		for _, scheme := range []string{"light", "dark"} {
			p.look(width, 10000, scheme)
			p.waitUntil(`document.querySelector('#slowest tbody tr') && document.querySelector('#compare tbody tr') && document.documentElement.dataset.theme === '` + scheme + `'`)
			height := evaluate[float64](p, `document.querySelector('footer').getBoundingClientRect().bottom`)
			require.Less(t, height, 10000.)
			p.look(width, int64(height), scheme)
			time.Sleep(300 * time.Millisecond) // canvases are drawn after the next layout
			p.screenshot(fmt.Sprintf("page-%d-%s", width, scheme))
		}
	}
}
