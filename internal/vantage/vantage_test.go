// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package vantage_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/vantage"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

func TestParse_ReturnsWhatStringWrote(t *testing.T) {
	for v := vantage.Unspecified; v.Valid(); v++ {
		parsed, ok := vantage.Parse(v.String())
		require.True(t, ok)
		require.Equal(t, v, parsed)
		parsed, ok = vantage.Parse([]byte(v.String()))
		require.True(t, ok)
		require.Equal(t, v, parsed)
	}
}

func TestParse_RejectsUnknownNames(t *testing.T) {
	for _, name := range []string{"Client", "proxy", "client "} {
		_, ok := vantage.Parse(name)
		require.False(t, ok, name)
	}
}

func TestVantage_InvalidValueHasNoName(t *testing.T) {
	require.False(t, vantage.Vantage(math.MaxUint8).Valid())
	require.Empty(t, vantage.Vantage(math.MaxUint8).String())
}

func TestVantage_EqualsWireSchema(t *testing.T) {
	require.Len(t, tokenpulsev1.Vantage_name, int(vantage.Engine)+1)
	for v := vantage.Client; v.Valid(); v++ {
		require.Equal(t, int32(v), tokenpulsev1.Vantage_value["VANTAGE_"+map[vantage.Vantage]string{
			vantage.Client: "CLIENT", vantage.Gateway: "GATEWAY", vantage.Server: "SERVER", vantage.Engine: "ENGINE",
		}[v]])
	}
}
