// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestInteger(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  int64
		ok    bool
	}{
		"integer":                         {int64(-7), -7, true},
		"whole double":                    {3.0, 3, true},
		"fractional double":               {3.5, 0, false},
		"string of digits":                {"42", 42, true},
		"string beyond float64 precision": {"9007199254740993", 9007199254740993, true},
		"string of a whole double":        {"4.0", 4, true},
		"string without a number":         {"four", 0, false},
		"empty string":                    {"", 0, false},
		"NaN":                             {math.NaN(), 0, false},
		"infinity":                        {math.Inf(1), 0, false},
		"too large for int64":             {9.3e18, 0, false},
		"boolean":                         {true, 0, false},
		"empty value":                     {nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := pcommon.NewValueEmpty()
			require.NoError(t, v.FromRaw(tt.value))
			got, ok := Integer(v)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)
		})
	}
}
