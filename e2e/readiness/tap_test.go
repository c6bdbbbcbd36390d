// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// tap is a tap before engines. All of them may get 503 at a time.
type tap struct {
	*collector.JudgingTap
	engines []*engine
}

const ejectsAll = "receivers: {token_tap: {liveness: {max_ejected: 1}}}"

// storage keeps what the tap learned.
func storage(t *testing.T) string {
	return fmt.Sprintf("{extensions: {file_storage: {directory: %q}}, service: {extensions: [pprof, file_storage]}, receivers: {token_tap: {storage: file_storage}}}", t.TempDir())
}

func startTap(t *testing.T, engines []*engine, more ...string) *tap {
	t.Helper()
	var routes []string
	for i, e := range engines {
		routes = append(routes, fmt.Sprintf(`{prefix: /%d, upstream: {endpoint: "http://%s"}}`, i, e.address))
	}
	more = append(more, ejectsAll, "receivers: {token_tap: {routes: ["+strings.Join(routes, ", ")+"]}}")
	return &tap{collector.StartJudgingTap(t, "http://"+engines[0].address, more...), engines}
}

var errNotWhole = errors.New("the answer is not whole")

// ask sends a request to an engine, and reads the answer.
func (c *tap) ask(ctx context.Context, engine int, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(fmt.Sprintf("/%d", engine)+llmservice.ChatPath), strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && !strings.HasSuffix(string(answer), llmservice.ChatEnd) {
		err = errNotWhole
	}
	return err
}

// askInBackground returns a channel with the outcome. At the end of the test, the client breaks off.
func (c *tap) askInBackground(t *testing.T, engine int, body string) <-chan error {
	t.Helper()
	answered := make(chan error, 1)
	go func() { answered <- c.ask(t.Context(), engine, body) }()
	return answered
}

// teach sends an engine requests one by one.
func (c *tap) teach(t *testing.T, engine, requests int, body string) {
	t.Helper()
	for range requests {
		require.NoError(t, c.ask(t.Context(), engine, body))
	}
}

// load sends requests to the first engines, whether they are answered or not, until the returned function is called.
func (c *tap) load(t *testing.T, engines int, body string) (stop func()) {
	t.Helper()
	const clients = 3
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	for i := range engines {
		for range clients {
			open.Go(func() {
				for ctx.Err() == nil {
					if c.ask(ctx, i, body) != nil {
						time.Sleep(perWord)
					}
				}
			})
		}
	}
	return func() {
		cancel()
		open.Wait()
	}
}
