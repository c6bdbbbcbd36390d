// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// load is the content of the requests that several paths get, in every encoding.
type load struct {
	name    string
	lengths []int // tokens of each stream of a request
	series  int   // models that the streams of all requests name in turn
	parts   int   // requests that carry a stream; 1 sends it whole
	unique  bool  // each stream has an attribute value of its own
}

// fixed is a load of whole streams of one length.
func fixed(name string, streams, tokens int) load {
	return load{name: name, lengths: slices.Repeat([]int{tokens}, streams), series: len(models), parts: 1}
}

// mix is a load of whole streams of different lengths in random order.
func mix(name string, lengths []int, times int) load {
	l := load{name: name, lengths: slices.Repeat(lengths, times), series: len(models), parts: 1}
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(l.lengths), func(i, j int) {
		l.lengths[i], l.lengths[j] = l.lengths[j], l.lengths[i]
	})
	return l
}

func (l load) tokens() (tokens int) {
	for _, n := range l.lengths {
		tokens += n
	}
	return tokens
}

func (l load) withUniqueValues() load { l.unique = true; return l }

func (l load) inParts(parts int) load { l.parts = parts; return l }

func (l load) ofSeries(series int) load { l.series = series; return l }

// Output lengths of the public Azure LLM inference trace 2023, services "conversation"
// (19,366 answers) and "code" (8,819): the mean of each 50th of the answers, sorted by
// length. Source: github.com/Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_conv.csv
// and _code.csv, licence CC-BY 4.0, described in "Splitwise" (Patel et al., ISCA 2024).
var (
	conversationLengths = []int{
		16, 32, 41, 47, 52, 57, 62, 67, 71, 75, 79, 82, 85, 87, 90, 92, 94, 96, 99, 101, 105, 109, 113, 119, 125,
		133, 141, 150, 160, 169, 182, 202, 220, 339, 379, 387, 392, 395, 396, 398, 402, 407, 412, 415, 420, 427, 434, 453, 507, 641,
	}
	codeLengths = []int{
		6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 13, 13,
		13, 14, 14, 15, 15, 16, 17, 18, 18, 19, 21, 22, 24, 26, 28, 31, 34, 39, 45, 52, 60, 72, 91, 130, 336,
	}
)

// stream is encoded in every format. Times are Unix nanoseconds, in whole microseconds.
type stream struct {
	id     string
	model  string
	unique string // value of an additional attribute, or empty
	start  int64
	chunks []int64 // one token each
}

var models = []string{"llama-3-70b", "qwen-3-32b", "mixtral-8x22b", "gpt-oss-120b"}

// epoch is the earliest start. It is fixed, so that all runs send the same bytes.
const epoch = 1_795_233_292_000_000_000

// streams returns the streams of one request, with the first token after 200 to 600 ms
// and the others 15 to 25 ms apart. The name makes stream IDs unique among the requests
// of a turn, and a number in place of idMark among turns. The first stream names the
// model with number first.
func (l load) streams(name string, first int) []stream {
	random := rand.New(rand.NewPCG(1, 2))
	within := func(low, high time.Duration) int64 {
		return int64(low + time.Duration(random.Int64N(int64((high-low)/time.Microsecond)))*time.Microsecond)
	}
	streams := make([]stream, len(l.lengths))
	for i, tokens := range l.lengths {
		start := epoch + within(0, time.Second)
		at := start + within(200*time.Millisecond, 600*time.Millisecond)
		chunks := make([]int64, tokens)
		for j := range chunks {
			chunks[j] = at
			at += within(15*time.Millisecond, 25*time.Millisecond)
		}
		streams[i] = stream{id: fmt.Sprintf("%s-%s-%04d", name, idMark, i), model: l.model(first + i), start: start, chunks: chunks}
		if l.unique {
			streams[i].unique = fmt.Sprintf("chatcmpl-%s-%s-%04d", name, idMark, i)
		}
	}
	return streams
}

func (l load) model(i int) string {
	if i %= l.series; l.series > len(models) {
		return fmt.Sprintf("model-%d", i)
	}
	return models[i%len(models)]
}

// bodies encodes the requests of a turn: enough of them for all series and parts. The
// first parts of all streams precede the second parts, so many streams are open at once.
func (l load) bodies(encode func(streams []stream, part, parts int) []byte) (bodies bodySequence) {
	requests := max(connections, l.series/len(l.lengths))
	for part := range l.parts {
		for i := range requests {
			sequence := &bodies[i%connections]
			*sequence = append(*sequence, encode(l.streams(fmt.Sprint("request-", i), i*len(l.lengths)), part, l.parts))
		}
	}
	return bodies
}

func (s stream) end() int64 { return s.chunks[len(s.chunks)-1] }
