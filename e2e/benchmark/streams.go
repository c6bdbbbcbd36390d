// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	streamsPerRequest = 50
	tokensPerStream   = 500
	tokensPerRequest  = streamsPerRequest * tokensPerStream
)

// stream is encoded in every format. Times are Unix nanoseconds, in whole microseconds.
type stream struct {
	id     string
	model  string
	start  int64
	chunks []int64 // one token each
}

var models = []string{"llama-3-70b", "qwen-3-32b", "mixtral-8x22b", "gpt-oss-120b"}

// epoch is the earliest start. It is fixed, so that all runs send the same bytes.
const epoch = 1_795_233_292_000_000_000

// plan returns the streams of one request of the usual size.
func plan(name string, tokens int) []stream { return planOf(name, streamsPerRequest, tokens, models) }

// planOf returns streams with the first token after 200 to 600 ms and the others 15 to
// 25 ms apart. The name makes stream IDs unique among open streams,
// and a number in place of idMark among requests.
func planOf(name string, count, tokens int, models []string) []stream {
	random := rand.New(rand.NewPCG(1, 2))
	within := func(low, high time.Duration) int64 {
		return int64(low + time.Duration(random.Int64N(int64((high-low)/time.Microsecond)))*time.Microsecond)
	}
	streams := make([]stream, count)
	for i := range streams {
		start := epoch + within(0, time.Second)
		at := start + within(200*time.Millisecond, 600*time.Millisecond)
		chunks := make([]int64, tokens)
		for j := range chunks {
			chunks[j] = at
			at += within(15*time.Millisecond, 25*time.Millisecond)
		}
		streams[i] = stream{id: fmt.Sprintf("%s-%s-%04d", name, idMark, i), model: models[i%len(models)], start: start, chunks: chunks}
	}
	return streams
}

func (s stream) end() int64 { return s.chunks[len(s.chunks)-1] }

// must returns the encoding of a message, which cannot fail here.
func must(encoded []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return encoded
}
