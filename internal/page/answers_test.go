// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGet_ComputesFewAnswersAtATime(t *testing.T) {
	const requests = 100
	p := &Page{answers: newAnswers()}
	started, release := make(chan struct{}, requests), make(chan struct{})
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			_, _ = p.get(strconv.Itoa(i), func() (any, error) {
				started <- struct{}{}
				<-release
				return i, nil
			})
		})
	}
	require.Eventually(t, func() bool { return len(started) == maxComputing }, time.Minute, time.Millisecond)
	require.Never(t, func() bool { return len(started) > maxComputing }, 50*time.Millisecond, 10*time.Millisecond)
	close(release)
	group.Wait()
	require.Len(t, started, requests, "each is computed at last")
	require.LessOrEqual(t, len(p.answers.recent), maxCached)
}

func TestGet_SameRequestsShareARecentAnswer(t *testing.T) {
	p := &Page{answers: newAnswers()}
	computed := 0
	get := func() string {
		body, err := p.get("request", func() (any, error) { computed++; return computed, nil })
		require.NoError(t, err)
		return string(body)
	}
	require.Equal(t, "1", get())
	p.answers.recent["request"] = answer{[]byte("1"), time.Now().Add(time.Hour)} // however slow the test is
	require.Equal(t, "1", get())
	p.answers.recent["request"] = answer{[]byte("1"), time.Now().Add(-maxAge)}
	require.Equal(t, "2", get())
}

func TestThresholds_AreLimited(t *testing.T) {
	var thresholds Thresholds
	for i := range maxThresholds {
		require.False(t, thresholds.Knows(strconv.Itoa(i)))
		thresholds.Set(strconv.Itoa(i), "time_to_first_token", float64(i))
	}
	thresholds.Set("further", "time_to_first_token", 1)
	require.True(t, thresholds.Knows("further"), "it will never be known, so no span is searched for it")
	indicator, _ := thresholds.of("further")
	require.Nil(t, indicator)
	_, value := thresholds.of("7")
	require.InDelta(t, 7, float64(value), 0)
}
