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

func TestPrintable(t *testing.T) {
	for text, expected := range map[string]string{
		"":                        "",
		`llama-3 "70b" \ 🦙 é 模型`:  `llama-3 "70b" \ 🦙 é 模型`,
		"\x1b[2J\x1b]0;title\x07": `\x1b[2J\x1b]0;title\a`,
		"a\tb\nc\rd\v\f\x00\x7f":  `a\tb\nc\rd\v\f\x00\x7f`,
		"\u009b31m":               `\u009b31m`,
		"gpt\u202e4-tpg\u2066":    `gpt\u202e4-tpg\u2066`,
		"a\u200bb\u00a0c\ufeff":   `a\u200bb\u00a0c\ufeff`,
		"\u2028\U000e0041":        `\u2028\U000e0041`,
		"bad\xffutf8\xc3":         `bad\xffutf8\xc3`,
		"replaced \ufffd":         "replaced \ufffd",
	} {
		require.Equal(t, expected, printable(text))
	}
}

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
