// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// FuzzLines splits a body into lines, whatever the sizes of the reads in which it
// arrives.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\r\n\n  \nccc", []byte{1, 2, 3})
	f.Add(strings.Repeat("x", 21)+"\n"+strings.Repeat("y", 20)+"\r\n"+strings.Repeat("z", 9000), []byte{255})
	f.Add(strings.Repeat(" ", 300)+"\n{", []byte{0, 0, 7})
	store := assembly.NewStore(assembly.Limits{MaxStreams: 1, MaxMemory: 1 << 20}, nil)
	f.Fuzz(func(t *testing.T, body string, sizes []byte) {
		const longest = 20
		lines := NewLineReader(longest, store)
		require.NoError(t, lines.Reset(&pieces{body, sizes}))
		var got []string
		var err error
		for err == nil {
			for line, ok := lines.next(); ok; line, ok = lines.next() {
				got = append(got, string(line)) // "" for a line that is too long
			}
			err = lines.Fill()
			require.LessOrEqual(t, len(lines.buffer), readSize)
		}
		require.ErrorIs(t, err, io.EOF)
		lines.Close()
		require.Zero(t, store.Memory())

		var want []string
		for line := range strings.Lines(body) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			switch {
			case len(line) > longest:
				want = append(want, "")
			case strings.TrimSpace(line) != "":
				want = append(want, line)
			}
		}
		require.Equal(t, want, got)
	})
}

// pieces is a body that arrives in pieces of these sizes, in turns.
type pieces struct {
	body  string
	sizes []byte
}

// Read implements io.Reader.
func (p *pieces) Read(into []byte) (int, error) {
	if p.body == "" {
		return 0, io.EOF
	}
	size := len(p.body)
	if len(p.sizes) > 0 {
		size = 1 + int(p.sizes[0])
		p.sizes = append(p.sizes[1:], p.sizes[0])
	}
	n := copy(into, p.body[:min(size, len(p.body))])
	p.body = p.body[n:]
	return n, nil
}
