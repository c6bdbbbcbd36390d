// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package outcome_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/outcome"
)

// The table of the documentation is the expectation: one line per meaning, with every name in backticks.
func TestMeaningOf_TheTableOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/definitions.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "### Finish reasons\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n#")
	documented := 0
	for row, meaning := range map[string]outcome.Meaning{
		"failure": outcome.Failed, "abort": outcome.Aborted, "cancellation": outcome.Cancelled,
		"unfinished": outcome.Unfinished, "content filter": outcome.Filtered, "ordinary end": outcome.Ended,
	} {
		_, line, ok := strings.Cut(section, "\n| "+row+" |")
		require.True(t, ok, row)
		line, _, _ = strings.Cut(line, "\n")
		named := regexp.MustCompile("`([A-Za-z_-]+)`").FindAllStringSubmatch(line[:strings.LastIndex(line[:len(line)-1], "|")], -1)
		require.NotEmpty(t, named, row)
		for _, name := range named {
			require.Equal(t, meaning, outcome.MeaningOf(name[1]), name[1])
		}
		if meaning != outcome.Ended {
			documented += len(named)
		}
	}
	require.Equal(t, outcome.Known()+2, documented, "error_... and ..._error are documented besides the table")
}

func TestMeaningOf_OtherSpellings(t *testing.T) {
	for name, meaning := range map[string]outcome.Meaning{
		"ERROR": outcome.Failed, "TIMEOUT": outcome.Failed, "Error": outcome.Failed, "ERROR_TOXIC": outcome.Failed,
		"network_error": outcome.Failed, "FinishReason.MALFORMED_FUNCTION_CALL": outcome.Failed,
		"FINISH_REASON_SAFETY": outcome.Filtered, "content-filter": outcome.Filtered, "CONTENT FILTER": outcome.Filtered,
		"Cancelled": outcome.Cancelled, "USER_CANCEL": outcome.Cancelled,
		"COMPLETE": outcome.Ended, "STOP": outcome.Ended, "end_turn": outcome.Ended, "": outcome.Ended, "terror": outcome.Ended,
		"error " + strings.Repeat("x", 100): outcome.Ended,
	} {
		require.Equal(t, meaning, outcome.MeaningOf(name), name)
	}
}

func TestMeaningOf_AllocatesNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() {
		outcome.MeaningOf("FinishReason.MALFORMED_FUNCTION_CALL")
		outcome.MeaningOf("end_turn")
	}))
}

func TestReason_TheWorstOfSeveralCounts(t *testing.T) {
	var r outcome.Reason
	for _, step := range []struct{ reason, worst string }{
		{"stop", "stop"},
		{"content_filter", "content_filter"},
		{"length", "content_filter"},
		{"abort", "abort"},
		{"error", "error"},
		{"TIMEOUT", "error"},
		{"cancelled", "error"},
	} {
		r = r.Worse(step.reason)
		require.Equal(t, step.worst, r.Name, "after %s", step.reason)
	}
}

// Each case follows from a rule of docs/definitions.md ("Outcomes").
func TestOf(t *testing.T) {
	reason := func(name string) outcome.Reason { return outcome.Reason{}.Worse(name) }
	for name, test := range map[string]struct {
		facts               outcome.Facts
		expected, errorType string
	}{
		"token and end":                      {outcome.Facts{Token: true, Reason: reason("stop")}, "success", ""},
		"no token":                           {outcome.Facts{Reason: reason("stop")}, "error", "empty_answer"},
		"no token, reported success":         {outcome.Facts{Reported: "success"}, "error", "empty_answer"},
		"no token, content filter":           {outcome.Facts{Reason: reason("SAFETY")}, "success", ""},
		"no token, complete":                 {outcome.Facts{Tokenless: true}, "success", ""},
		"failed after tokens":                {outcome.Facts{Token: true, Reason: reason("ERROR")}, "error", "ERROR"},
		"failed, reported success":           {outcome.Facts{Reported: "success", Token: true, Reason: reason("error")}, "error", "error"},
		"failed, with a type":                {outcome.Facts{Reported: "error", ErrorType: "503", Reason: reason("error")}, "error", "503"},
		"failed, without a type":             {outcome.Facts{Reported: "error", Reason: reason("error")}, "error", "error"},
		"status error":                       {outcome.Facts{Failed: true, Token: true, Reason: reason("stop")}, "error", ""},
		"aborted, seen by a client":          {outcome.Facts{Token: true, Reason: reason("abort")}, "error", "abort"},
		"aborted, seen by the engine":        {outcome.Facts{Token: true, Reason: reason("abort"), InEngine: true}, "cancelled", ""},
		"aborted, engine with status error":  {outcome.Facts{Failed: true, Token: true, Reason: reason("abort"), InEngine: true}, "error", ""},
		"aborted after the client had left":  {outcome.Facts{Reported: "cancelled", Token: true, Reason: reason("abort")}, "cancelled", ""},
		"cancelled by reason":                {outcome.Facts{Token: true, Reason: reason("cancelled")}, "cancelled", ""},
		"cancelled by reason, status error":  {outcome.Facts{Failed: true, Reason: reason("cancelled")}, "cancelled", ""},
		"reported incomplete, failed status": {outcome.Facts{Reported: "incomplete", Failed: true}, "incomplete", ""},
		"another engine continues":           {outcome.Facts{Token: true, Reason: reason("not_finished")}, "incomplete", ""},
		"no token, unexpected":               {outcome.Facts{ErrorType: outcome.UnexpectedAnswer}, "error", "unexpected_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			got, errorType := outcome.Of(&test.facts)
			require.Equal(t, [2]string{test.expected, test.errorType}, [2]string{got, errorType})
		})
	}
}
