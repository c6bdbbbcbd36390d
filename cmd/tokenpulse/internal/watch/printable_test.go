// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// hostile is the name of a model that clears the screen, forges a row, reverses the text and moves
// the cells of the table.
const hostile = "m\x1b[2J\nforged\tcell\v\f\u202e\u009b\xff"

func TestWrite_EscapesHostileNames(t *testing.T) {
	plain := Row{Model: "llama", Service: "chat", Vantage: "server"}
	out := table(t, []Row{{Model: hostile, Service: hostile, Vantage: hostile}, plain})
	requirePrintable(t, out)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.Len(t, lines, 3)
	require.True(t, strings.HasPrefix(lines[1], `m\x1b[2J\nforged\tcell\v\f\u202e\u009b\xff  m\x1b`), lines[1])
	for _, title := range []string{"SERVICE", "VANTAGE", "REQUESTS"} {
		column := strings.Index(lines[0], title)
		for _, line := range lines[1:] {
			require.Equal(t, "  ", line[column-2:column], "%s begins in the same column of each line", title)
			require.NotEqual(t, byte(' '), line[column])
		}
	}
}

func TestScrape_EscapesHostileNamesFromTheWire(t *testing.T) {
	e := newExporter()
	e.record(strings.ToValidUTF8(hostile, "?"), "success", 1, 1)
	rows := e.scrape(t).Rows()
	require.Len(t, rows, 1)
	out := table(t, rows)
	requirePrintable(t, out)
	require.Contains(t, out, `m\x1b[2J\nforged\tcell`)
}

// Errors quote the server's status line.
func TestScrape_EscapesErrors(t *testing.T) {
	statusLine := func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = connection.Write([]byte("HTTP/1.1 500 \x1b[2J\r\nContent-Length: 0\r\n\r\n"))
			_ = connection.Close()
		}
	}
	server := httptest.NewServer(http.HandlerFunc(statusLine))
	defer server.Close()
	_, err := Scrape(t.Context(), server.Client(), server.URL)
	require.ErrorContains(t, err, `answered 500 \x1b[2J`)
	requirePrintable(t, err.Error())
}

func requirePrintable(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for _, r := range text {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%q in %q", r, text)
	}
}
