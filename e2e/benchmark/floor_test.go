// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A floor that skipped tokens would flatter no one: every ratio to it would be too large.
func TestFloor_CountsEveryTokenInItsBucket(t *testing.T) {
	floor := &tallies{byModel: map[string]*tally{}}
	l := fixed("", 8, 50)
	response := httptest.NewRecorder()
	floor.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(tokenStreams(l.streams("a", 0), 0, 1))))
	require.Equal(t, http.StatusOK, response.Code, response.Body)
	require.Len(t, floor.byModel, len(models))
	expected := map[string]*tally{}
	for _, s := range l.streams("a", 0) {
		if expected[s.model] == nil {
			expected[s.model] = new(tally)
		}
		of := expected[s.model]
		of.requests++
		of.firstToken[bucket(float64(s.chunks[0]-s.start))]++
		of.toTheLast[bucket(float64(s.end()-s.start))]++
		of.perOutputToken[bucket(float64(s.end()-s.chunks[0])/49)]++
		for i := 1; i < len(s.chunks); i++ {
			of.interToken[bucket(float64(s.chunks[i]-s.chunks[i-1]))]++
		}
	}
	require.Equal(t, expected, floor.byModel)
	for _, nanos := range []float64{1e3, 1e9, 1e13} {
		require.NotEqual(t, bucket(nanos), bucket(1.009*nanos))
		require.LessOrEqual(t, bucket(1.009*nanos)-bucket(nanos), 2)
	}

	response = httptest.NewRecorder()
	floor.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte{0xff})))
	require.Equal(t, http.StatusBadRequest, response.Code)
}
