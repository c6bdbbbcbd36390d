// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestore_AnswersTheSame(t *testing.T) {
	f := newFeeder(0.9)
	f.toKnee()
	f.serveSized(300, 120, 0, 300, 1000) // of another mix
	f.serve(100, 100, 0)
	encoded := f.AppendBinary(nil)
	require.Less(t, len(encoded), 5<<10)
	restored := New(0.9, 24*time.Hour)
	require.NoError(t, restored.Restore(encoded))
	require.Equal(t, f.Answer(f.at), restored.Answer(f.at))
	require.Equal(t, encoded, restored.AppendBinary(nil))
}

func TestRestore_RefusesOthers(t *testing.T) {
	f := newFeeder(0.9)
	f.toKnee()
	encoded := f.AppendBinary(nil)
	l := New(0.99, week)
	require.ErrorContains(t, l.Restore(encoded), "objective 0.9")
	require.ErrorContains(t, l.Restore(nil), "version")
	require.ErrorContains(t, l.Restore([]byte{version + 1}), "version")
	require.ErrorIs(t, l.Restore(encoded[:len(encoded)-1]), errMalformed)
	require.ErrorIs(t, l.Restore(append(encoded, 0)), errMalformed)
	require.Equal(t, New(0.99, week), l)
}

func FuzzRestore(f *testing.F) {
	feeder := newFeeder(0.9)
	feeder.toKnee()
	f.Add(feeder.AppendBinary(nil), uint64(100), uint64(5), uint64(1000))
	f.Add(New(0.9, week).AppendBinary(nil), uint64(math.MaxUint64), uint64(1), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, encoded []byte, good, bad, tokens uint64) {
		l := New(0.9, week)
		if l.Restore(encoded) != nil {
			require.Equal(t, New(0.9, week), l)
		}
		r := l.replica()
		for i := range 5 {
			at := origin.Add(time.Duration(i) * slot)
			r.add(at, offer{Good: good / 2, Bad: bad / 2, Output: tokens, Prompt: tokens / 3, Unsized: bad})
			a := l.Answer(at)
			for _, v := range a.Limit {
				require.False(t, math.IsNaN(v) || v < 0)
			}
		}
	})
}
