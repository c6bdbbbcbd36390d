// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package openfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

func gzipped(t *testing.T, members ...string) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, member := range members {
		w := gzip.NewWriter(&all)
		_, err := io.WriteString(w, member)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return all.Bytes()
}

func zstandard(t *testing.T, frames ...string) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, frame := range frames {
		w, err := zstd.NewWriter(&all)
		require.NoError(t, err)
		_, err = io.WriteString(w, frame)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return all.Bytes()
}

func TestOpen_ReadsContentWhateverItsCompressionAndName(t *testing.T) {
	long := strings.Repeat("abcdefghij", 100_000)
	skippable := []byte{0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'}
	for name, test := range map[string]struct {
		stored  []byte
		content string
	}{
		"empty":                         {nil, ""},
		"plain":                         {[]byte(long), long},
		"shorter than a magic number":   {[]byte("ab"), "ab"},
		"gzip":                          {gzipped(t, long), long},
		"gzip of nothing":               {gzipped(t, ""), ""},
		"gzip members":                  {gzipped(t, "a", long, "b"), "a" + long + "b"},
		"zstd":                          {zstandard(t, long), long},
		"zstd frames":                   {zstandard(t, "a", long, "b"), "a" + long + "b"},
		"zstd after a skippable frame":  {append(skippable, zstandard(t, long)...), long},
		"zstd before a skippable frame": {append(zstandard(t, long), skippable...), long},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spans.png")
			require.NoError(t, os.WriteFile(path, test.stored, 0o600))
			var read atomic.Int64
			file, err := Open(t.Context(), path, &read)
			require.NoError(t, err)
			require.Equal(t, path, file.Name())
			require.Equal(t, test.content[:min(len(test.content), PrefixBytes)], string(file.Prefix()))
			content, err := io.ReadAll(file)
			require.NoError(t, err)
			require.True(t, test.content == string(content), "other content") //nolint:testifylint // a long one
			require.EqualValues(t, len(test.stored), read.Load())
			require.NoError(t, file.Close())
		})
	}
}

func TestOpen_ReturnsTheContentBeforeTheDamage(t *testing.T) {
	// A frame per line, as the file exporter writes with a flush between.
	lines := []string{strings.Repeat("a", 1000) + "\n", strings.Repeat("b", 1000) + "\n"}
	for format, whole := range map[string][]byte{"gzip": gzipped(t, lines...), "zstd": zstandard(t, lines...)} {
		for cut := 4; cut < len(whole); cut++ {
			file := New(t.Context(), "x", bytes.NewReader(whole[:cut]), nil)
			content, err := io.ReadAll(file)
			require.True(t, strings.HasPrefix(strings.Join(lines, ""), string(content)), "%s cut at %d", format, cut)
			if err == nil { // exactly the first member
				require.Equal(t, lines[0], string(content), "%s cut at %d", format, cut)
				continue
			}
			require.ErrorContains(t, err, "the "+format+" data is damaged or ends early: ")
			require.NotErrorIs(t, err, io.EOF, "the end of a damaged file is no regular end")
			_, again := file.Read(make([]byte, 1))
			require.Equal(t, err, again)
		}
	}
}

func TestOpen_RejectsWindowsThatNeedMoreMemory(t *testing.T) {
	var large bytes.Buffer
	w, err := zstd.NewWriter(&large, zstd.WithWindowSize(16<<20))
	require.NoError(t, err)
	for range 2 {
		_, err = io.WriteString(w, "text")
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	_, err = io.ReadAll(New(t.Context(), "x", &large, nil))
	require.EqualError(t, err, "the zstd data is damaged or ends early: the zstd window of 16777216 bytes is larger than 8388608; compress with a smaller one")
}

func TestOpen_NamesAMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.jsonl")
	_, err := Open(t.Context(), path, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
}

// swapStdin lets a test write standard input.
func swapStdin(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stdin
	os.Stdin = r
	t.Cleanup(func() {
		os.Stdin = before
		_ = w.Close() // ends a read that is left behind
		require.NoError(t, r.Close())
	})
	return w
}

func TestOpen_ReadsStandardInput(t *testing.T) {
	w := swapStdin(t)
	content := strings.Repeat("line\n", 50_000)
	sent := gzipped(t, content)
	go func() {
		_, _ = w.Write(sent)
		_ = w.Close()
	}()
	var read atomic.Int64
	file, err := Open(t.Context(), Stdin, &read)
	require.NoError(t, err)
	require.Equal(t, "stdin", file.Name())
	got, err := io.ReadAll(file)
	require.NoError(t, err)
	require.True(t, content == string(got), "other content") //nolint:testifylint // a long one
	require.EqualValues(t, len(sent), read.Load())
	require.NoError(t, file.Close())
	_, err = os.Stdin.Stat()
	require.NoError(t, err, "standard input stays open")
}

func TestRead_EndsWhereAPipeSendsNothingAndTheContextIsCancelled(t *testing.T) {
	w := swapStdin(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.WriteString("first\nsec")
	require.NoError(t, err)
	file, err := Open(ctx, Stdin, nil)
	require.NoError(t, err)
	line, err := file.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "first\n", line)
	cancel()
	rest, err := file.ReadString('\n')
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "sec", rest)
}

// A terminal continues after Ctrl-D.
func TestRead_EndsAtTheFirstEndOfATerminal(t *testing.T) {
	terminal := io.MultiReader(strings.NewReader("first"))
	again := false
	file := New(t.Context(), "terminal", readerFunc(func(p []byte) (int, error) {
		n, err := terminal.Read(p)
		if errors.Is(err, io.EOF) && !again {
			again, terminal = true, strings.NewReader("second")
		}
		return n, err
	}), nil)
	require.Equal(t, "first", string(file.Prefix()))
	content, err := io.ReadAll(file)
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

// The read that stays behind must not write to memory that the caller uses again.
func TestRead_LeavesTheBufferOfACancelledRead(t *testing.T) {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	source := &interruptible{ctx: ctx, source: r}
	time.AfterFunc(10*time.Millisecond, cancel)
	buffer := make([]byte, 4)
	_, err := source.Read(buffer)
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.Write([]byte("late"))
	require.NoError(t, err)
	require.Equal(t, readResult{4, nil}, <-source.results)
	require.Equal(t, make([]byte, 4), buffer)
}
