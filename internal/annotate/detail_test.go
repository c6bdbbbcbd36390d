// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// docs/attributes.md has a table of the attributes that need full detail.
func TestDetail_IsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "attributes.md"))
	require.NoError(t, err)
	_, inFull, _ := strings.Cut(string(page), "<!-- full:begin -->")
	inFull, _, _ = strings.Cut(inFull, "<!-- full:end -->")
	cfg, full := DefaultConfig(), 0
	for name := range derivedNames {
		key := regexp.MustCompile("(?m)^\\| [^|]*`" + regexp.QuoteMeta(name) + "`")
		require.Regexp(t, key, string(page))
		leftOut := false
		for id := range numbers.Count {
			leftOut = leftOut || id.Attribute() == name && !cfg.Writes(id)
		}
		require.Equal(t, leftOut, key.MatchString(inFull), name)
		if leftOut {
			full++
		}
	}
	require.Positive(t, full)
}

func TestToNanosecond_RoundsAsRoundDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		nanos := float64(random.IntN(1<<20)) / 2
		for _, seconds := range []float64{nanos / 1e9, math.Nextafter(nanos/1e9, 0), random.ExpFloat64(), 1e9 * random.ExpFloat64()} {
			require.Equal(t, math.Float64bits(math.Round(seconds*1e9)/1e9), math.Float64bits(latency.ToNanosecond(seconds)), "%v", seconds)
		}
	}
}
