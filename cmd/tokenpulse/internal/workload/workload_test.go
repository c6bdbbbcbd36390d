// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
)

// line is a request as the tools that replay traces read it.
type line struct {
	Timestamp    *float64
	InputLength  *int   `json:"input_length"`
	OutputLength *int   `json:"output_length"`
	HashIDs      *[]int `json:"hash_ids"`
}

func write(t *testing.T, requests ...Request) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, (&Trace{Requests: requests}).Write(&out))
	return out.String()
}

func parseLines(t *testing.T, text string) (all []line) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var one line
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&one))
		all = append(all, one)
	}
	return all
}

func TestNew_HasWhatArrivedAndCanBeReplayed(t *testing.T) {
	const ms = int64(time.Millisecond)
	trace := New([]arrivals.Request{
		{Start: 1_000 * ms, Sized: true, Prompt: 5, Output: 5, Mistaken: true},
		{Start: 2_000*ms + 400_000, Sized: true, Prompt: 600, Output: 7, Cached: 512},
		{Start: 2_001 * ms, Sized: true, Prompt: 9, Output: 3}, // rounds to 1 ms later
		{Start: 2_001 * ms, Sized: true, Prompt: 8, Output: 4},
		{Start: 2_002 * ms},                                      // refused
		{Start: 2_003 * ms, Sized: true, Output: 1},              // the prompt is unknown
		{Start: 2_004 * ms, Sized: true, Prompt: 10, Output: 0},  // ended by a content filter
		{Start: 2_005 * ms, Sized: true, Prompt: maxInput + 1},   // too long
		{Start: 9_000 * ms, Sized: true, Prompt: 1, Output: 1e6}, // cancelled or not
	})
	require.Equal(t, []Request{{0, 600, 7}, {1, 8, 4}, {1, 9, 3}, {4, 10, 1}, {7_000, 1, 1e6}}, trace.Requests)
	require.Equal(t, [Reasons]int{Mistaken: 1, Unsized: 2, TooLong: 1}, trace.LeftOut)
	require.EqualValues(t, 628, trace.Input)
	require.EqualValues(t, 512, trace.Cached)
	require.Equal(t, 7*time.Second, trace.Duration())
}

// AIPerf (PromptGenerator._build_token_sequence) rejects a request unless 0 < input_length - (len(hash_ids)-1) * 512 <= 512. Its
// prompts are equal where their IDs are: prompts without a common ID share no block.
func TestWrite_EachPromptHasBlocksOfItsOwn(t *testing.T) {
	var requests []Request
	for _, input := range []uint32{1, 2, 511, 512, 513, 1024, 1025, 6758, maxInput} {
		requests = append(requests, Request{Timestamp: int64(input), Input: input, Output: 7})
	}
	seen := map[int]bool{}
	lines := parseLines(t, write(t, requests...))
	require.Len(t, lines, len(requests))
	for i, l := range lines {
		require.EqualValues(t, requests[i].Input, *l.InputLength)
		require.EqualValues(t, requests[i].Timestamp, *l.Timestamp)
		require.Equal(t, 7, *l.OutputLength)
		last := *l.InputLength - (len(*l.HashIDs)-1)*512
		require.Positive(t, last)
		require.LessOrEqual(t, last, 512)
		for _, id := range *l.HashIDs {
			require.False(t, seen[id])
			seen[id] = true
		}
	}
}

// The first line of Mooncake's conversation_trace.jsonl has this form, down to the spaces.
func TestWrite_HasTheFormOfMooncakesTraces(t *testing.T) {
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}), " ", ", "), "[]")
	require.Equal(t, `{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [`+ids+"]}\n", write(t, Request{0, 6758, 500}))
}

func TestRead_ReturnsWhatWriteWrote(t *testing.T) {
	requests := []Request{{0, 1, 1}, {0, 513, 2}, {1, 512, 3}, {86_400_000, maxInput, maxOutput}}
	trace, err := Read(strings.NewReader(write(t, requests...)))
	require.NoError(t, err)
	require.Equal(t, requests, trace.Requests)
}

// conversation.jsonl has lines of Mooncake's FAST25-release/traces/conversation_trace.jsonl, in another order.
func TestRead_MooncakesTrace(t *testing.T) {
	file, err := os.Open("testdata/conversation.jsonl")
	require.NoError(t, err)
	defer file.Close()
	trace, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, []Request{{0, 13544, 71}, {0, 915, 355}, {2999, 1053, 26}, {6000, 8772, 1}}, trace.Requests)
}

func TestRead_NamesTheLineOfARequestThatCannotBeReplayed(t *testing.T) {
	const good = `{"timestamp": 5.4, "input_length": 3, "output_length": 2}`
	for name, c := range map[string]struct{ text, message string }{
		"empty":         {"\n \n", "the trace is empty; expected a request per line"},
		"no JSON":       {good + "\nx", "line 2: not a request of a trace: "},
		"a delay":       {good + "\n\n" + `{"session_id": "a", "delay": 2, "input_length": 1, "output_length": 1}`, "line 3: the request has no timestamp; a delay after another request cannot be replayed"},
		"text":          {`{"timestamp": 1, "text_input": "x", "output_length": 1}`, "line 1: the request has no input_length; text cannot be replayed"},
		"no answer":     {`{"timestamp": 1, "input_length": 1}`, "line 1: the request has no output_length; give the tokens of the answer"},
		"empty answer":  {`{"timestamp": 1, "input_length": 1, "output_length": 0}`, "line 1: output_length is 0; supported are 1 to 1048576 tokens"},
		"huge answer":   {`{"timestamp": 1, "input_length": 1, "output_length": 1e9}`, "line 1: output_length is 1e+09; supported are 1 to 1048576 tokens"},
		"negative time": {`{"timestamp": -1, "input_length": 1, "output_length": 1}`, "line 1: timestamp is -1; supported are 0 to 315360000000 milliseconds"},
		"long line":     {strings.Repeat(" ", maxLine+1), "line 1: longer than 1 MiB; write one request per line"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text))
			require.ErrorContains(t, err, c.message)
		})
	}
	_, err := read(strings.NewReader(strings.Repeat(good+"\n", 4)), 3)
	require.EqualError(t, err, "line 4: the trace has more than 3 requests; split it")
	trace, err := read(strings.NewReader(strings.Repeat(good+"\n", 3)), 3)
	require.NoError(t, err)
	require.Len(t, trace.Requests, 3)
}

func TestDetect(t *testing.T) {
	for text, is := range map[string]bool{
		`{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1`: true, // cut
		`{"output_length": 5, "hash_ids": [0, 1], "input_length": 3, "timestamp": 0.5}`:  true,
		`{"event":"start","stream_id":"s","time_unix_nano":"1000"}`:                      false,
		`{"metadata": {"timestamp": 1, "input_length": 3}}`:                              false,
		`{"resourceSpans": []}`:                    false,
		`[{"timestamp": 0, "input_length": 6758}]`: false,
		"":               false,
		"x":              false,
		`{"timestamp": `: false,
	} {
		require.Equal(t, is, Detect([]byte(text)), text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"timestamp": 5.4, "input_length": 3, "output_length": 2, "hash_ids": [1]}` + "\n")
	f.Add(`{"timestamp": 1e300, "input_length": 3, "output_length": 2}`)
	f.Add(`{"timestamp": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		require.Zero(t, trace.Requests[0].Timestamp)
		again, err := Read(strings.NewReader(write(t, trace.Requests...)))
		require.NoError(t, err)
		require.Equal(t, trace.Requests, again.Requests)
	})
}
