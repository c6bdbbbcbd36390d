// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func TestReadme_TokensExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example := regexp.MustCompile(`(?s)<<EOF_EVENTS\n(.*?)EOF_EVENTS`).FindSubmatch(readme)
	require.NotNil(t, example)
	b := start(t)
	got := b.post(t, typeNDJSON, strings.NewReader(strings.ReplaceAll(string(example[1]), "${now}", strconv.FormatInt(int64(t0/1_000_000_000), 10))))
	require.Equal(t, reply{200, got.header, answer{Accepted: 4}}, got)
	s := b.sink.one(t)
	require.Equal(t, "chat llama-3-70b", s.Name)
	require.EqualValues(t, 230e6, s.End-s.Start)
	require.Equal(t, []chunk{{200e6, 1, timeline.Content}, {220e6, 1, timeline.Content}}, s.Chunks)
}
