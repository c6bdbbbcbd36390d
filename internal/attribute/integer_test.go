package attribute

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
		"an integer":                   {int64(-7), -7, true},
		"a whole double":               {3.0, 3, true},
		"a double":                     {3.5, 0, false},
		"a text of digits":             {"42", 42, true},
		"a text past a float's digits": {"9007199254740993", 9007199254740993, true},
		"a text of a whole double":     {"4.0", 4, true},
		"words":                        {"four", 0, false},
		"no text":                      {"", 0, false},
		"not a number":                 {math.NaN(), 0, false},
		"infinite":                     {math.Inf(1), 0, false},
		"too large":                    {9.3e18, 0, false},
		"a flag":                       {true, 0, false},
		"nothing":                      {nil, 0, false},
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
