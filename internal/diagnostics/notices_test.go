// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Every log line leads to an anchor of docs/sources.md.
func TestNotices_LinkToTheRemedies(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "sources.md"))
	require.NoError(t, err)
	messages := []string{unclaimed.message}
	for _, ofSource := range NewNotices(zap.NewNop(), source.Names()).reasons {
		for _, notice := range ofSource[1:] {
			messages = append(messages, notice.message)
		}
	}
	require.Len(t, messages, 1+10*len(source.Names()))
	link := regexp.MustCompile(`docs/sources\.md#(\w+)$`)
	for _, message := range messages {
		anchor := link.FindStringSubmatch(message)
		require.NotNil(t, anchor, message)
		require.Contains(t, string(page), `<a id="`+anchor[1]+`"></a>`, message)
	}
}

// A sender of token events is not advised to send token events.
func TestNotices_AdviseToSendTheMissingStartEvent(t *testing.T) {
	reasons := NewNotices(zap.NewNop(), source.Names()).reasons
	for reader, name := range source.Names() {
		message := reasons[reader][latency.NotReported].message
		require.Equal(t, name == "token_stream", strings.Contains(message, "remedy: send a start event"), message)
		require.Equal(t, name != "token_stream", strings.Contains(message, "send token events to token_stream"), message)
	}
}
