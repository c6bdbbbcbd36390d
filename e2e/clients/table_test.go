// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const tableHead = `
| library | version | call | takes for the first token | TTFT true | TTFT at best | TTFT derived | TPOT true | TPOT derived |
|---|---|---|---|---|---|---|---|---|
`

// tableCalls lists the rows of the table. A row shows the call of its group with the
// least disturbance by the machine.
var tableCalls = []struct {
	label string
	calls []string
}{
	{"chat", []string{"1", "2"}},
	{"Responses API", []string{"1-responses", "2-responses", "3-responses"}},
	{"chat, not streamed", []string{"whole"}},
	{"chat, aborted", []string{"aborted"}},
}

// leastDisturbed returns the call whose time to first token is closest to the best that
// the library could measure.
func leastDisturbed(group []string, calls map[string]seen) string {
	least, deviation := group[0], math.Inf(1)
	for _, call := range group {
		s, found := calls[call]
		if !found {
			continue
		}
		if d, known := s.deviation(); known && d < deviation {
			least, deviation = call, d
		}
	}
	return least
}

// resultTable shows true and derived times side by side, one row per library and call that has any.
type resultTable struct {
	libraries int
	rows      strings.Builder
}

func (table *resultTable) add(t *testing.T, l library, requests map[string]served, calls map[string]seen) {
	t.Helper()
	table.libraries++
	for _, row := range tableCalls {
		call := leastDisturbed(row.calls, calls)
		request := requests[modelPrefix+call]
		s, found := calls[call]
		if !found {
			continue
		}
		ttft, tpot := inTable(s.milliseconds("tokenpulse.time_to_first_token")), inTable(s.milliseconds("tokenpulse.time_per_output_token"))
		if ttft == "-" && tpot == "-" {
			continue // nothing to compare
		}
		fmt.Fprintln(&table.rows, "|", strings.Join([]string{
			l.name, installedVersion(t, l.name), row.label, s.firstInWords(),
			inTable(request.firstTokenTruth()), inTable(s.best()), ttft, inTable(request.perTokenTruth()), tpot,
		}, " | "), "|")
	}
}

// firstInWords describes the frame that the library takes for the first token, and why
// its time differs from the true one.
func (s seen) firstInWords() string {
	var words string
	switch s.firstFrame() {
	case contentFrame:
		words = "first token"
	case wholeFrame:
		words = "the whole answer, and says nothing of that"
	case roleFrame:
		words = "role frame, which holds none"
		if s.served.api == responsesAPI {
			words = "response.created, which holds none"
		}
	default:
		return "does not say"
	}
	if s.sinceHeaders {
		words += "; counts from the answer's headers"
	}
	return words
}

func inTable(milliseconds float64, known bool) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", milliseconds)
}

// measured matches the times in the table, which differ from run to run.
var measured = regexp.MustCompile(`[\d.]+ ms`)

// require compares the table with that in docs/sources.md, except for measured times. To
// rewrite it:
//
//	make suite-clients ARGS=-update
func (table *resultTable) require(t *testing.T) {
	t.Helper()
	written := tableHead[1:] + table.rows.String()
	t.Logf("\n%s", written)
	if t.Failed() || table.libraries < len(libraries) {
		return
	}
	testenv.RequireTables(t, "docs/sources.md", map[string]string{"clients": written}, measured)
}

// installedVersion returns the installed version of an npm package.
func installedVersion(t *testing.T, name string) string {
	t.Helper()
	written, err := os.ReadFile(filepath.Join(clientsFolder(t), "node_modules", filepath.FromSlash(name), "package.json"))
	require.NoError(t, err)
	var described struct{ Version string }
	require.NoError(t, json.Unmarshal(written, &described))
	return described.Version
}
