// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The commands that the README shows beside `make run` print what it says, with the config of `make run`. Only addresses
// are replaced.
func TestREADME_SampleOutputIsThatOfItsCommands(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(markdown.Read(t, "README.md"), "Send a stream of your own while it runs:\n```sh\n")
	require.True(t, found)
	commands, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "```\n")
	output, _, _ := strings.Cut(rest, "```\n")
	require.Equal(t, 2, strings.Count(commands, "curl "))
	c := collector.Start(t, collector.Example(t, "live-page.yaml"))
	commands = strings.NewReplacer("curl ", "curl -sS ", "localhost:4319", c.HTTP, "localhost:9464", c.Metrics).Replace(commands)
	require.Equal(t, output, paste(t, testenv.Root(t), commands))
}
