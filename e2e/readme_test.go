// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The commands that the README shows beside `make run` print what it says, with the config of `make run`. Only addresses
// are replaced.
func TestREADME_SampleOutputIsThatOfItsCommands(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(readMarkdown(t, "README.md"), "Send a stream of your own while it runs:\n```sh\n")
	require.True(t, found)
	commands, rest, _ := strings.Cut(rest, "```\n")
	_, rest, _ = strings.Cut(rest, "```\n")
	output, _, _ := strings.Cut(rest, "```\n")
	require.Equal(t, 2, strings.Count(commands, "curl "))
	c := startCollector(t, example(t, "live-page.yaml"))
	commands = strings.NewReplacer("curl ", "curl -sS ", "localhost:4319", c.http, "localhost:9464", c.metrics).Replace(commands)
	require.Equal(t, output, paste(t, testenv.Root(t), commands))
}
