// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

func TestParse_ReturnsWhatStringWrote(t *testing.T) {
	for v := timeline.VantageUnspecified; v.Valid(); v++ {
		parsed, ok := timeline.ParseVantage(v.String())
		require.True(t, ok)
		require.Equal(t, v, parsed)
		parsed, ok = timeline.ParseVantage([]byte(v.String()))
		require.True(t, ok)
		require.Equal(t, v, parsed)
	}
}

func TestParse_RejectsUnknownNames(t *testing.T) {
	for _, name := range []string{"Client", "proxy", "client "} {
		_, ok := timeline.ParseVantage(name)
		require.False(t, ok, name)
	}
}

func TestVantage_InvalidValueHasNoName(t *testing.T) {
	require.False(t, timeline.Vantage(math.MaxUint8).Valid())
	require.Empty(t, timeline.Vantage(math.MaxUint8).String())
}

func TestVantage_EqualsWireSchema(t *testing.T) {
	require.Len(t, tokenpulsev1.Vantage_name, int(timeline.VantageEngine)+1)
	for v := timeline.VantageClient; v.Valid(); v++ {
		require.Equal(t, int32(v), tokenpulsev1.Vantage_value["VANTAGE_"+map[timeline.Vantage]string{
			timeline.VantageClient: "CLIENT", timeline.VantageGateway: "GATEWAY", timeline.VantageServer: "SERVER", timeline.VantageEngine: "ENGINE",
		}[v]])
	}
}
