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

// stream is what every format tells in its own words. Times are Unix
// nanoseconds, in whole microseconds.
type stream struct {
	id     string
	model  string
	start  int64
	chunks []int64 // one token each
}

var models = []string{"llama-3-70b", "qwen-3-32b", "mixtral-8x22b", "gpt-oss-120b"}

// epoch is when all traffic begins. It is fixed, so that all runs send the same bytes.
const epoch = 1_795_233_292_000_000_000

// plan makes the streams of one request, as most paths send it.
func plan(name string, tokens int) []stream { return planOf(name, streamsPerRequest, tokens, models) }

// planOf makes streams: first tokens after 200 to 600 ms, the others 15 to 25 ms
// apart. The name keeps the streams of requests apart that are open at the same time.
func planOf(name string, count, tokens int, models []string) []stream {
	random := rand.New(rand.NewPCG(1, 2))
	within := func(least, most time.Duration) int64 {
		return int64(least + time.Duration(random.Int64N(int64((most-least)/time.Microsecond)))*time.Microsecond)
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
		streams[i] = stream{id: fmt.Sprintf("%s-%04d", name, i), model: models[i%len(models)], start: start, chunks: chunks}
	}
	return streams
}

func (s stream) end() int64 { return s.chunks[len(s.chunks)-1] }
