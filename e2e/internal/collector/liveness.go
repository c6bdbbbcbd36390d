// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// JudgingTap is a tap that judges its upstreams, whose silences may last a second beside their prefills.
type JudgingTap struct {
	*Tap
	Readiness string // address that load balancers ask
}

// StartJudgingTap starts a tap that judges its upstreams. more are configs, as of StartTap.
func StartJudgingTap(t *testing.T, upstream string, more ...string) *JudgingTap {
	t.Helper()
	address := FreeAddress(t)
	judging := fmt.Sprintf("receivers: {token_tap: {liveness: {endpoint: %q, bound: 1s}}}", address)
	return &JudgingTap{StartTap(t, upstream, append([]string{judging}, more...)...), address}
}

// ReadyURL returns the address of the verdict on an engine, of a host and port.
func (c *JudgingTap) ReadyURL(engine string) string {
	return fmt.Sprintf("http://%s/engines/%s/ready", c.Readiness, strings.ReplaceAll(engine, ":", "_"))
}

// Evidence is the verdict on an engine, with what it follows from. Times are in seconds.
type Evidence struct {
	Engine, State, Reason string
	Ready, Learned        bool
	Waiting, Decoding     int
	Silence, Bound        float64
	LearnedFrom           int   `json:"learned_from"`
	LargestPromptBytes    int64 `json:"largest_prompt_bytes"`
}

// Evidence returns what the tap knows of an engine. All is zero before the first verdict.
func (c *JudgingTap) Evidence(t *testing.T, engine string) Evidence {
	t.Helper()
	var all struct{ Engines []Evidence }
	require.NoError(t, json.Unmarshal(Get(t, "http://"+c.Readiness+"/engines", "application/json"), &all))
	for _, e := range all.Engines {
		if e.Engine == engine {
			return e
		}
	}
	return Evidence{}
}

// WaitForEvidence waits until what the tap knows of an engine is enough, and returns it.
func (c *JudgingTap) WaitForEvidence(t *testing.T, engine string, enough func(*Evidence) bool) (e Evidence) {
	t.Helper()
	require.Eventually(t, func() bool {
		e = c.Evidence(t, engine)
		return enough(&e)
	}, Patience, 20*time.Millisecond, "%+v", &e)
	return e
}

// WaitForState waits until an engine has a state, and returns the evidence.
func (c *JudgingTap) WaitForState(t *testing.T, engine, state string) Evidence {
	t.Helper()
	return c.WaitForEvidence(t, engine, func(e *Evidence) bool { return e.State == state })
}

// AskReady asks whether an engine is ready. Only some of the evidence is in the answer.
func AskReady(readyURL string) (status int, e Evidence, err error) {
	response, err := (&http.Client{Timeout: 10 * time.Second}).Get(readyURL)
	if err != nil {
		return 0, e, err
	}
	defer response.Body.Close()
	return response.StatusCode, e, json.NewDecoder(response.Body).Decode(&e)
}

// WaitForReady waits until the answer has a status, and returns it.
func WaitForReady(t *testing.T, readyURL string, status int) (e Evidence) {
	t.Helper()
	require.Eventually(t, func() bool {
		var got int
		var err error
		got, e, err = AskReady(readyURL)
		return err == nil && got == status
	}, Patience, 20*time.Millisecond, "%s: %+v", readyURL, &e)
	return e
}
