// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A storage at its maximum size refuses new streams. It accepts them again once streams have ended.
func TestStorage_RecoversWhenFull(t *testing.T) {
	t.Parallel()
	c := startStored(t, "--set=extensions.file_storage.max_size=1048576")
	send := func(event string, stream int, more string) int {
		line := fmt.Sprintf(`{"event":%q,"stream_id":"%d","time_unix_nano":"%d"%s}`, event, stream, time.Now().UnixNano(), more)
		response, err := http.Post("http://"+c.HTTP+"/v1/tokens", "application/x-ndjson", strings.NewReader(line+"\n"))
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	begin := func(stream int) int {
		return send("start", stream, fmt.Sprintf(`,"attributes":{"x":%q}`, strings.Repeat("x", 10_000)))
	}
	open := 0
	status := begin(open)
	for ; status == http.StatusOK; status = begin(open) {
		open++
		require.Less(t, open, 1000)
	}
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Greater(t, open, 10)
	require.Contains(t, c.Output(t), "raise the maximum size of the extension, or lower max_memory_mib")
	for stream := range open {
		send("end", stream, "")
	}
	require.Eventually(t, func() bool { return begin(open) == http.StatusOK }, 20*time.Second, 50*time.Millisecond)
}
