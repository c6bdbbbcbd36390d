// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// LastDigits is the relative difference that floating point may cause between two
// computations of one number.
const LastDigits = 1e-12

// RequireNear fails if a number is outside of the tolerance.
func RequireNear(tb testing.TB, want Number, got float64, about string) {
	tb.Helper()
	require.LessOrEqual(tb, math.Abs(want.Value-got), want.Within+LastDigits*math.Abs(want.Value), "got %v, want %v: %s", got, want.Value, about)
}

// RequireAttributes compares all that the processor wrote on a span with the answer.
func (a *Answer) RequireAttributes(tb testing.TB, attributes pcommon.Map, about string) {
	tb.Helper()
	for name, number := range a.Numbers {
		got, ok := attributes.Get(name)
		if !ok && strings.HasPrefix(name, "tokenpulse.stall.") && number.Value <= number.Within {
			continue // zero stalls are not written
		}
		require.True(tb, ok, "%s is missing, want %v; %s", name, number.Value, about)
		RequireNear(tb, number, double(got), name+" "+about)
	}
	for name, v := range attributes.All() {
		if strings.HasPrefix(name, names.Prefix) && (v.Type() == pcommon.ValueTypeDouble || v.Type() == pcommon.ValueTypeInt) {
			require.Contains(tb, a.Numbers, name, "got %v, missing by definition; %s", v.AsRaw(), about)
		}
	}
	outcome, _ := attributes.Get(names.Outcome)
	require.Equal(tb, a.Outcome, outcome.AsString(), about)
	_, buffered := attributes.Get(names.Buffered)
	require.Equal(tb, a.Buffered, buffered, about)
	if a.Numbers["tokenpulse.stall.count"].Within == 0 {
		_, atEnd := attributes.Get(names.StalledAtEnd)
		require.Equal(tb, a.StalledAtEnd, atEnd, about)
	}
	require.Equal(tb, a.Unmeasured, list(attributes, names.Unmeasured), about)
	require.ElementsMatch(tb, a.Estimated, list(attributes, names.Estimated), about)
}

func double(v pcommon.Value) float64 {
	if v.Type() == pcommon.ValueTypeInt {
		return float64(v.Int())
	}
	return v.Double()
}

func list(attributes pcommon.Map, name string) (texts []string) {
	if v, ok := attributes.Get(name); ok {
		for _, entry := range v.Slice().All() {
			texts = append(texts, entry.Str())
		}
	}
	return texts
}
