// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reading is a stream whose reads go into one buffer.
type reading struct {
	backlog
	buffer []byte
	judged bool
	now    int64
}

// read reads text after a pause, and reports whether it waits.
func (r *reading) read(after time.Duration, text string) bool {
	r.now += int64(after)
	n := copy(r.buffer[:len(r.buffer)-r.bytes], text)
	return r.add(arrival{r.buffer[:n], r.now}, r.buffer, r.judged)
}

// waiting returns what waits, and when it was read.
func (r *reading) waiting() (text string, at []int64) {
	var all []byte
	for _, read := range r.take() {
		all = append(all, read.bytes...)
		at = append(at, read.at)
	}
	return string(all), at
}

func TestBacklog_ReadsAreTakenInOrderWithTheirTimes(t *testing.T) {
	r := reading{buffer: make([]byte, 100)}
	for _, round := range []int64{0, maxBacklog} {
		var want []int64
		for i := range int64(maxBacklog) {
			require.True(t, r.read(time.Nanosecond, string(rune('a'+i))), "%d", i)
			want = append(want, round+i+1)
		}
		require.False(t, r.add(arrival{[]byte("x"), r.now}, r.buffer, false), "the backlog is full")
		text, at := r.waiting()
		require.Equal(t, "abcdefgh", text, "without the one that found no room, later reads did not overwrite others")
		require.Equal(t, want, at)
	}
	text, _ := r.waiting()
	require.Empty(t, text)
}

func TestBacklog_TakesHalfOfTheBuffer(t *testing.T) {
	r := reading{buffer: make([]byte, 10)}
	require.False(t, r.read(0, "abcdef"))
	require.True(t, r.read(0, "abc"))
	require.False(t, r.read(0, "def"))
	require.True(t, r.read(0, "de"))
	require.Equal(t, 5, r.bytes)
	text, _ := r.waiting()
	require.Equal(t, "abcde", text)
	require.True(t, r.read(0, "abcde"), "all of it is free again")
}

// What waits longer would make an engine seem silent.
func TestBacklog_ReadsOfAJudgedEngineWaitFor200ms(t *testing.T) {
	r := reading{buffer: make([]byte, 100), judged: true, now: time.Now().UnixNano()}
	require.False(t, r.read(0, "a"), "the first token")
	require.True(t, r.read(150*time.Millisecond, "b"))
	require.True(t, r.read(150*time.Millisecond, "c"), "150 ms after the first that waits")
	require.True(t, r.read(50*time.Millisecond, "d"))
	require.False(t, r.read(time.Nanosecond, "e"))
	text, _ := r.waiting()
	require.Equal(t, "bcd", text)
	require.True(t, r.read(200*time.Millisecond, "f"))
	r.waiting()
	for range 3 {
		require.False(t, r.read(201*time.Millisecond, "g"), "a slow stream")
	}
	r.judged = false
	for range maxBacklog {
		require.True(t, r.read(time.Hour, "h"), "nobody asks whether this one is silent")
	}
}
