// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// secret stands for every text of a prompt or an answer in the files of these tests.
const secret = "SECRET"

// scanned returns what a scan yields and reports.
func scanned(t *testing.T, text string) (streams []*stream.Stream, damaged, warnings []string) {
	t.Helper()
	k, ok := Detect([]byte(text))
	require.True(t, ok)
	scanner := Scanner{
		Damaged: func(err error) error { damaged = append(damaged, err.Error()); return nil },
		Warn:    func(warning string) { warnings = append(warnings, warning) },
	}
	require.NoError(t, scanner.Scan(t.Context(), strings.NewReader(text), k, func(s *stream.Stream) error {
		streams = append(streams, s)
		return nil
	}))
	held, err := json.Marshal(streams)
	require.NoError(t, err)
	require.NotContains(t, string(held)+fmt.Sprint(damaged, warnings), secret)
	return streams, damaged, warnings
}

func at(base int64, offsets ...time.Duration) []stream.Chunk {
	var chunks []stream.Chunk
	for _, offset := range offsets {
		chunks = append(chunks, stream.Chunk{Time: base + int64(offset), Tokens: 1})
	}
	return chunks
}

const ms = time.Millisecond

func usage(input, output uint64) *stream.Usage {
	return &stream.Usage{InputTokens: &input, OutputTokens: &output}
}

// Made by hand from the source of vllm/benchmarks/serve.py: a streamed answer, an answer of one token, one whose status is
// an error, and one that broke off.
const vllmResult = `{"date": "20261101-120010", "endpoint_type": "openai-chat", "backend": "openai-chat", "label": null, "model_id": "org/model",
"tokenizer_id": "org/model", "num_prompts": 4, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": null, "duration": 10.0, "completed": 2, "failed": 2,
"total_input_tokens": 30, "total_output_tokens": 5, "request_goodput": null, "mean_itl_ms": NaN,
"input_lens": [10, 20, 30, 40], "output_lens": [4, 1, 0, 0], "ttfts": [0.25, 0.3, 0.0, 0.125], "itls": [[0.000001, 0.02, 0.0200000004], [], [], [0.5]],
"latencies": [0.3, 0.3, 0.0, 0.0], "start_times": [5000.5, 5001.0, 5001.5, 5002.0], "queue_times": [0, 0, 0, 0],
"generated_texts": ["SECRET -Infinity", "SECRET", "", "SEC\"RET"],
"errors": ["", "", "Too Many Requests", "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n    SECRET\naiohttp.client_exceptions.ServerDisconnectedError: SECRET\n"]}`

func TestScan_VLLMBench(t *testing.T) {
	streams, damaged, warnings := scanned(t, vllmResult)
	require.Empty(t, damaged)
	require.Empty(t, warnings)
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	attributes := stream.Attributes{"gen_ai.operation.name": "chat", "gen_ai.request.model": "org/model"}
	require.Equal(t, []*stream.Stream{
		{
			ID: "vllm bench 20261101-120010 run 1 request 1", Vantage: timeline.VantageClient, Attributes: attributes, Start: begin, Arrivals: stream.Frames,
			Chunks: at(begin, 250*ms, 250*ms+1000, 270*ms+1000, 290*ms+1000),
			End:    &stream.End{Time: begin + int64(300*ms), Usage: usage(10, 4)},
		},
		{
			ID: "vllm bench 20261101-120010 run 1 request 2", Vantage: timeline.VantageClient, Attributes: attributes, Start: begin + int64(500*ms), Arrivals: stream.Frames,
			Chunks: at(begin, 800*ms), End: &stream.End{Time: begin + int64(800*ms), Usage: usage(20, 1)},
		},
		{
			ID: "vllm bench 20261101-120010 run 1 request 3", Vantage: timeline.VantageClient, Attributes: attributes, Start: begin + int64(1000*ms), Arrivals: stream.Unknown,
			End: &stream.End{Error: "429", Attributes: stream.Attributes{"error.type": "429", "http.response.status_code": int64(429)}},
		},
		{
			ID: "vllm bench 20261101-120010 run 1 request 4", Vantage: timeline.VantageClient, Attributes: attributes, Start: begin + int64(1500*ms), Arrivals: stream.Frames,
			Chunks: at(begin, 1625*ms, 2125*ms),
			End: &stream.End{
				Error:      "aiohttp.client_exceptions.ServerDisconnectedError",
				Attributes: stream.Attributes{"error.type": "aiohttp.client_exceptions.ServerDisconnectedError"},
			},
		},
	}, streams)
}

func TestScan_VLLMBench_SeveralRunsAndOlderVersions(t *testing.T) {
	const run = `{"backend": "vllm", "model_id": "m", "tokenizer_id": "m", "num_prompts": 1, "input_lens": [1], "output_lens": [2], "ttfts": [0.1], "itls": [[0.2]]}`
	streams, damaged, warnings := scanned(t, run+"\n"+`{"model_id": "m", "num_prompts": 1, "mean_ttft_ms": 3}`+"\n"+run)
	require.Equal(t, []string{"run 2: the result has no requests; run vllm bench serve with --save-detailed"}, damaged)
	require.Equal(t, []string{"run 1 has no start_times: all requests start at once", "run 3 has no start_times: all requests start at once"}, warnings)
	require.Len(t, streams, 2)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for i, s := range streams {
		require.Equal(t, fmt.Sprintf("vllm bench undated run %d request 1", 2*i+1), s.ID)
		require.Equal(t, at(begin, 100*ms, 300*ms), s.Chunks)
		require.Equal(t, "text_completion", s.Attributes["gen_ai.operation.name"])
		require.Equal(t, &stream.End{Usage: usage(1, 2)}, s.End)
	}
}

func TestScan_SGLangBench(t *testing.T) {
	const result = `{"tag": null, "backend": "%s", "dataset_name": "random", "request_rate": Infinity, "server_info": {"model_path": "/models/m", "served_model_name": "m", "nested": {"itls": [9]}},
"input_lens": [10, 10], "output_lens": [6, 0], "ttfts": [0.5, 0.0], "itls": [%s, []], "generated_texts": ["SECRET", ""], "errors": ["", "Bad Request: SECRET"], "cached_tokens": [8, 0]}`
	begin := epoch
	cached := uint64(8)
	for name, test := range map[string]struct {
		backend, itls string
		chunks        []stream.Chunk
		arrivals      stream.Arrivals
		streams       any // gen_ai.request.stream
		end           int64
	}{
		"gaps of tokens become chunks": {
			"sglang", "[0.01, 0.01, 0.01, 0.02]",
			[]stream.Chunk{{Time: begin + int64(500*ms), Tokens: 2}, {Time: begin + int64(530*ms), Tokens: 3}, {Time: begin + int64(550*ms), Tokens: 1}},
			stream.Counted, nil, 0,
		},
		"gaps of chunks stay":    {"sglang-oai-chat", "[0.01, 0.01]", at(begin, 500*ms, 510*ms, 520*ms), stream.Uncounted, nil, 0},
		"no answer was streamed": {"sglang-oai", "[]", nil, stream.Counted, false, begin + int64(500*ms)},
	} {
		t.Run(name, func(t *testing.T) {
			streams, damaged, _ := scanned(t, fmt.Sprintf(result, test.backend, test.itls))
			require.Empty(t, damaged)
			require.Len(t, streams, 2)
			s := streams[0]
			require.Equal(t, test.chunks, s.Chunks)
			require.Equal(t, test.arrivals, s.Arrivals)
			require.Equal(t, "m", s.Attributes["gen_ai.request.model"])
			require.Equal(t, test.streams, s.Attributes["gen_ai.request.stream"])
			expected := usage(10, 6)
			expected.CachedInputTokens = &cached
			require.Equal(t, &stream.End{Time: test.end, Usage: expected}, s.End)
			require.Equal(t, int64(400), streams[1].End.Attributes["http.response.status_code"])
		})
	}
}

const guidellmReport = "testdata/guidellm_report.json.gz"

// The expected numbers are those that guidellm computed of two requests of a real run.
func TestScan_GuideLLM_RealReport(t *testing.T) {
	report := testenv.Unzip(t, guidellmReport)
	streams, damaged, warnings := scanned(t, string(report))
	require.Empty(t, damaged)
	require.Equal(t, []string{"benchmark 1 has 2 of 40 requests: guidellm kept a sample of them (--sample-requests)"}, warnings)
	var computed struct {
		Benchmarks []struct {
			Requests struct {
				Successful []struct {
					ID      string  `json:"request_id"`
					Latency float64 `json:"request_latency"`
					TTFT    float64 `json:"time_to_first_token_ms"`
					ITL     float64 `json:"inter_token_latency_ms"`
					Input   uint64  `json:"prompt_tokens"`
					Output  uint64  `json:"output_tokens"`
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(report, &computed))
	require.Len(t, streams, 2)
	for i, expected := range computed.Benchmarks[0].Requests.Successful {
		s := streams[i]
		const quarterMicrosecond = 0.00025 // to which guidellm's times are exact
		last := s.Chunks[len(s.Chunks)-1].Time
		require.Equal(t, expected.ID, s.ID)
		require.InDelta(t, expected.Latency*1e3, float64(s.End.Time-s.Start)/1e6, 2*quarterMicrosecond)
		require.InDelta(t, expected.TTFT, float64(s.Chunks[0].Time-s.Start)/1e6, 2*quarterMicrosecond)
		require.InDelta(t, expected.ITL, float64(last-s.Chunks[0].Time)/1e6/float64(expected.Output-1), 2*quarterMicrosecond)
		require.Equal(t, usage(expected.Input, expected.Output), s.End.Usage)
		require.Len(t, s.Chunks, int(expected.Output))
		require.Equal(t, stream.Ends, s.Arrivals)
		require.Equal(t, stream.Attributes{"gen_ai.operation.name": "text_completion", "gen_ai.request.model": "codellama/CodeLlama-34b-Instruct-hf"}, s.Attributes)
	}
}

// Made by hand from the sources of guidellm: each status, and the names of older versions.
func TestScan_GuideLLM_StatusesAndVersions(t *testing.T) {
	const timings = `"request_start": 1700000000.5, "request_end": 1700000002.0`
	const begin = int64(1_700_000_000_500_000_000)
	for name, test := range map[string]struct {
		requests string
		check    func(*stream.Stream)
	}{
		"cancelled before the first token": {
			`"incomplete": [{"request_id": "r", "info": {"timings": {` + timings + `}}, "output_metrics": {"total_tokens": null}, "output_tokens": 3}]`,
			func(s *stream.Stream) {
				require.Equal(t, &stream.End{Time: begin + 1_500_000_000, Cancelled: true, Usage: &stream.Usage{}}, s.End)
				require.Empty(t, s.Chunks)
			},
		},
		"failed": {
			`"errored": [{"request_id": "r", "info": {"timings": {` + timings + `}, "error": "Client error '404 Not Found' for url 'SECRET'", "traceback": "Traceback:\n  SECRET\nhttpx.HTTPStatusError: SECRET"}}]`,
			func(s *stream.Stream) {
				require.Equal(t, "httpx.HTTPStatusError", s.End.Error)
				require.Equal(t, stream.Attributes{"error.type": "httpx.HTTPStatusError", "http.response.status_code": int64(404)}, s.End.Attributes)
			},
		},
		"not streamed": {
			`"successful": [{"request_id": "r", "info": {"timings": {` + timings + `}}, "output_metrics": {"total_tokens": 3}}]`,
			func(s *stream.Stream) { require.Equal(t, false, s.Attributes["gen_ai.request.stream"]) },
		},
		"version 0.3": {
			`"successful": [{"request_id": null, "prompt": "SECRET", "output": "SECRET", "prompt_tokens": 8, "output_tokens": 3, "start_time": 1700000000.5, "end_time": 1700000002.0, "first_token_time": 1700000001.0, "last_token_time": 1700000001.9}]`,
			func(s *stream.Stream) {
				require.Equal(t, at(begin, 500*ms, 950*ms, 1400*ms), s.Chunks)
				require.Equal(t, usage(8, 3), s.End.Usage)
				require.Equal(t, "guidellm benchmark 1 successful request 1", s.ID)
				require.Equal(t, "former", s.Attributes["gen_ai.request.model"])
			},
		},
		"one token": {
			`"successful": [{"request_id": "r", "info": {"timings": {` + timings + `, "first_token_iteration": 1700000001.0, "last_token_iteration": 1700000001.0, "token_iterations": 1}}}]`,
			func(s *stream.Stream) { require.Equal(t, at(begin, 500*ms), s.Chunks) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			streams, damaged, _ := scanned(t, `{"benchmarks": [{"type_": "generative_benchmark", "worker": {"backend_model": "former"}, "requests": {`+test.requests+`, "total": null}}]}`)
			require.Empty(t, damaged)
			require.Len(t, streams, 1)
			test.check(streams[0])
		})
	}
}

func TestScan_GuideLLM_YAML(t *testing.T) {
	streams, damaged, _ := scanned(t, `args:
  model: m
benchmarks:
- requests:
    successful:
    - request_id: r
      output: SECRET
      info: {timings: {request_start: 1700000000.5, request_end: 1700000002.0, first_token_iteration: 1700000001.25, last_token_iteration: 1700000001.5, token_iterations: 2}}
      output_metrics: {total_tokens: 2}
`)
	require.Empty(t, damaged)
	require.Len(t, streams, 1)
	require.Equal(t, "m", streams[0].Attributes["gen_ai.request.model"])
	require.Equal(t, at(streams[0].Start, 750*ms, 1000*ms), streams[0].Chunks)
}

// Made by hand from the sources of inference-perf.
func TestScan_InferencePerf(t *testing.T) {
	const report = `[
{"start_time": 100.5, "end_time": 102.0, "request": "{\"model\": \"m\", \"prompt\": \"SECRET\"}", "response": "SECRET", "error": null,
 "info": {"input_tokens": 12, "lora_adapter": null, "request_metrics": {"text": {"input_tokens": 12}}, "extra_info": {"raw_response": "SECRET"},
  "response_metrics": {"output_tokens": 4, "response_chunks": ["SECRET"], "chunk_times": [101.0, 101.25, 101.5], "output_token_times": [101.0, 101.25, 101.25, 101.5],
   "server_usage": {"prompt_tokens": 13, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": null}}}},
{"start_time": 101.0, "end_time": 101.5, "request": "x", "info": {"input_tokens": 3, "response_metrics": {"output_tokens": 0}}, "error": {"error_type": "HTTP Error 503", "error_msg": "SECRET"}},
{"start_time": 101.0, "end_time": 101.5, "info": {"input_tokens": 3, "output_tokens": 7, "output_token_times": []}, "error": null},
{"start_time": 101.0, "end_time": 101.5, "info": {"input_tokens": 3, "output_tokens": 7, "output_token_times": [101.1, 101.2]}, "error": null},
{"start_time": 101.0, "end_time": 101.5, "info": null, "error": {"error_type": "CancelledError", "error_msg": ""}},
{"start_time": 101.0, "end_time": 100.0, "info": null},
{"start_time": 101.0, "end_time": "noon"},
{"start_time": 101.0, "end_time": 102.0, "info": {"output_tokens": 1.5}}
]`
	streams, damaged, _ := scanned(t, report)
	require.Equal(t, []string{
		"request 6: end_time - start_time is -1s; supported are 0 to 24 hours",
		`request 7: "noon" is no number of seconds from -292 years to 292`,
		"request 8: 1.5 is no number of tokens",
	}, damaged)
	require.Len(t, streams, 5)
	whole, failed, unary, uncounted, cancelled := streams[0], streams[1], streams[2], streams[3], streams[4]
	begin := epoch + int64(100_500*ms)
	expected := usage(13, 5)
	expected.CachedInputTokens = new(uint64(8))
	require.Equal(t, &stream.Stream{
		ID: "inference-perf request 1", Vantage: timeline.VantageClient, Start: begin,
		Attributes: stream.Attributes{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
		Chunks:     []stream.Chunk{{Time: begin + int64(500*ms), Tokens: 1}, {Time: begin + int64(750*ms), Tokens: 2}, {Time: begin + int64(1000*ms), Tokens: 1}},
		End:        &stream.End{Time: begin + int64(1500*ms), Usage: expected},
	}, whole)
	require.Equal(t, int64(503), failed.End.Attributes["http.response.status_code"])
	require.Equal(t, false, unary.Attributes["gen_ai.request.stream"])
	require.Equal(t, usage(3, 7), unary.End.Usage)
	require.Equal(t, stream.Uncounted, uncounted.Arrivals)
	require.Equal(t, &stream.End{Time: epoch + int64(101_500*ms), Cancelled: true}, cancelled.End)
}

func TestScan_AIPerf_NewerNames(t *testing.T) {
	streams, damaged, _ := scanned(t, `{"metadata":{"x_request_id":"r","request_start_ns":1700000000000000000,"request_end_ns":1700000000900000000,"was_cancelled":false,"cancellation_time_ns":null},"metrics":{"time_to_first_token":{"value":100,"unit":"ms"},"inter_chunk_latency":{"value":[50],"unit":"ms"},"output_sequence_length":{"value":2,"unit":"tokens"}},"error":null}
{"metadata":{"x_request_id":"c","request_start_ns":1700000000000000000,"request_end_ns":1700000000900000000,"was_cancelled":true,"cancellation_time_ns":1700000000800000000},"metrics":{"error_isl":{"value":550,"unit":"tokens"}},"error":{"code":499,"type":"RequestCancellationError","message":"Request was cancelled after 0.000 seconds"}}
`)
	require.Empty(t, damaged)
	const begin = int64(1_700_000_000_000_000_000)
	require.Len(t, streams, 2)
	require.Equal(t, begin+int64(150*ms), streams[0].Chunks[1].Time)
	require.Equal(t, begin+int64(900*ms), streams[0].End.Time)
	require.Equal(t, stream.Uncounted, streams[0].Arrivals)
	require.Equal(t, &stream.End{Time: begin + int64(800*ms), Cancelled: true}, streams[1].End)
}

func TestScan_ErrorNamesRequestAndField(t *testing.T) {
	for name, test := range map[string]struct{ text, err string }{
		"lists differ in length":  {`{"model_id":"m","num_prompts":2,"ttfts":[0.1,0.2],"itls":[[]]}`, "run 1: itls has 1 requests, ttfts has 2"},
		"negative gap":            {`{"model_id":"m","num_prompts":1,"ttfts":[0.1],"itls":[[0.1,-0.2]]}`, "run 1: request 1: gap 2: itls is -200ms; supported are 0 to 24 hours"},
		"gap of a text":           {`{"model_id":"m","num_prompts":1,"ttfts":[0.1],"itls":[["x"]]}`, `run 1: itls: request 1: "x" is no number of seconds`},
		"not a list":              {`{"model_id":"m","num_prompts":1,"ttfts":{"a":1}}`, "run 1: ttfts: byte 41: not a list"},
		"cut off":                 {`{"model_id":"m","num_prompts":1,"ttfts":[0.1`, "run 1: ttfts: byte 44: unexpected EOF"},
		"too many tokens":         {`{"model_id":"m","num_prompts":1,"ttfts":[0.1],"output_lens":[1e99]}`, "run 1: output_lens: request 1: 1e99 is no number of tokens"},
		"no details":              {`{"backend":"sglang","dataset_name":"d"}`, "run 1: the result has no requests; run sglang.bench_serving with --output-details"},
		"no start":                {`{"benchmarks":[{"requests":{"successful":[{"request_id":"r"}]}}]}`, "benchmark 1: successful request 1: it has no start"},
		"first token too early":   {`{"benchmarks":[{"requests":{"errored":[{"start_time":5,"first_token_time":4,"last_token_time":4}]}}]}`, "errored request 1: first token - start is -1s"},
		"report without requests": {`{"benchmarks":[{"requests":{}}]}`, "the report has no requests; let guidellm keep them: --sample-requests"},
		"broken YAML":             {"benchmarks:\n\t- x", "the report is not YAML"},
		"no end_time":             {`[{"start_time":1,"end_time":null}]`, "request 1: it has no start_time or no end_time"},
		"token before the start":  {`[{"start_time":2,"end_time":3,"info":{"output_token_times":[2.5,1]}}]`, "request 1: token 2: output_token_times - start_time is -1s"},
		"cut list":                {`[{"start_time":2,"end_time":3},`, "request 2: byte"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(t.Context(), strings.NewReader(test.text))
			require.ErrorContains(t, err, test.err)
		})
	}
}

// A request or a run may have as many bytes as the limit says, however many there are.
func TestScan_BoundsEachRequest(t *testing.T) {
	run, request := maxRunBytes, maxRequestBytes
	defer func() { maxRunBytes, maxRequestBytes = run, request }()
	maxRunBytes, maxRequestBytes = 256<<10, 256<<10
	text := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	for name, file := range map[string]struct {
		before, unit, between, after string
		where                        string
	}{
		"inference-perf": {"[", `{"start_time":1,"end_time":2,"response":%s}`, ",", "]", "request 11"},
		"guidellm":       {`{"benchmarks":[{"requests":{"successful":[`, `{"start_time":1,"output":%s}`, ",", "]}}]}", "successful request 11"},
		"vLLM":           {"", `{"model_id":"m","num_prompts":1,"ttfts":[0.1],"generated_texts":[%s]}`, "\n", "", "run 11: generated_texts"},
	} {
		t.Run(name, func(t *testing.T) {
			within := strings.Repeat(fmt.Sprintf(file.unit, text(100<<10))+file.between, 10)
			streams, err := Read(t.Context(), strings.NewReader(file.before+within+fmt.Sprintf(file.unit, text(1))+file.after))
			require.NoError(t, err)
			require.Len(t, streams, 11)
			_, err = Read(t.Context(), strings.NewReader(file.before+within+fmt.Sprintf(file.unit, text(600<<10))+file.after))
			require.ErrorContains(t, err, file.where)
			require.ErrorIs(t, err, errTooLarge)
		})
	}
}

func TestScan_EndsWithContextAndConsumer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := Scanner{}.Scan(ctx, strings.NewReader(vllmResult), VLLMBench, func(*stream.Stream) error {
		seen++
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, seen)
	full := errors.New("full")
	scanner := Scanner{Damaged: func(error) error { return nil }}
	require.ErrorIs(t, scanner.Scan(t.Context(), strings.NewReader(vllmResult), VLLMBench, func(*stream.Stream) error { return full }), full)
}

func TestScan_TokenEvents_BoundWhatIsOpen(t *testing.T) {
	streams, chunks, ended := maxOpenStreams, maxOpenChunks, maxEndedStreams
	defer func() { maxOpenStreams, maxOpenChunks, maxEndedStreams = streams, chunks, ended }()
	maxOpenStreams, maxOpenChunks, maxEndedStreams = 2, 3, 2
	event := func(kind, id string) string {
		return fmt.Sprintf(`{"event":"%s","stream_id":"%s","time_unix_nano":"10"}`+"\n", kind, id)
	}
	_, err := Read(t.Context(), strings.NewReader(event("start", "a")+event("start", "b")+event("start", "c")))
	require.ErrorContains(t, err, "line 3: more than 2 streams have no end")
	_, err = Read(t.Context(), strings.NewReader(event("start", "a")+strings.Repeat(event("chunk", "a"), 4)))
	require.ErrorContains(t, err, "line 5: streams without an end have more than 3 chunks")

	// Streams with an end count no more, and the oldest of them is forgotten.
	var four strings.Builder
	for _, id := range []string{"a", "b", "c", "d"} {
		four.WriteString(event("start", id) + strings.Repeat(event("chunk", id), 3) + event("end", id))
	}
	text := four.String()
	_, err = Read(t.Context(), strings.NewReader(text+event("chunk", "c")))
	require.ErrorContains(t, err, `line 21: stream "c" has already ended`)
	_, err = Read(t.Context(), strings.NewReader(text+event("chunk", "a")))
	require.ErrorContains(t, err, `line 21: stream "a" has not started`)
}

func TestDetect(t *testing.T) {
	for name, test := range map[string]struct {
		prefix string
		kind   Kind // 0 for none
	}{
		"token event":                    {`{"event":"start"}` + "\n{", TokenEvents},
		"AIPerf":                         {`{"metadata":{"x_request_id":"r"},"metrics":{}}`, AIPerf},
		"vLLM":                           {vllmResult, VLLMBench},
		"vLLM, cut off":                  {vllmResult[:200], VLLMBench},
		"vLLM without details":           {`{"date":"x","backend":"vllm","model_id":"m","tokenizer_id":"m"}`, VLLMBench},
		"SGLang":                         {`{"backend":"sglang","dataset_name":"sharegpt","request_rate":Infinity,`, SGLangBench},
		"guidellm":                       {`{"metadata":{"version":1,"guidellm_version":"0.6.0"},"args":{`, GuideLLM},
		"former guidellm":                {`{"args":{},"benchmarks":[`, GuideLLM},
		"guidellm in YAML":               {"metadata:\n  version: 1\nargs:\n  x: 1\n", GuideLLM},
		"inference-perf":                 {` [ {"start_time":1,"request":"{\"event\":1}","end_time":2,`, InferencePerf},
		"spans":                          {`{"resourceSpans":[{"resource":{"attributes":[]}}]}`, 0},
		"AIPerf's statistics":            {`{"records":{"ttft":{"avg":1}}}`, 0},
		"inference-perf's summary":       {`{"load_summary":{},"successes":{}}`, 0},
		"text":                           {"hello", 0},
		"empty":                          {" \n", 0},
		"binary":                         {"\x0a\x80\x01", 0},
		"list of numbers":                {"[1,2]", 0},
		"byte order mark before a event": {"\xef\xbb\xbf{\"event\":\"start\"}", TokenEvents},
	} {
		t.Run(name, func(t *testing.T) {
			k, ok := Detect([]byte(test.prefix))
			require.Equal(t, test.kind, k)
			require.Equal(t, test.kind != 0, ok)
		})
	}
}

func TestEvents_BoundResources(t *testing.T) {
	before := maxResources
	defer func() { maxResources = before }()
	maxResources = 3
	r := newEvents()
	for i := range 20 {
		_, err := r.read(fmt.Appendf(nil, `{"event":"start","stream_id":"%d","time_unix_nano":"1","resource":{"host.name":"%[1]d"}}`, i))
		require.NoError(t, err)
		require.LessOrEqual(t, len(r.resources), 3)
		require.Equal(t, strconv.Itoa(i), r.byID[strconv.Itoa(i)].Resource.Attributes["host.name"])
	}
}

// Each kind has a name, and says of a tool what it does not record.
func TestKind_SaysWhatIsMissing(t *testing.T) {
	for k := TokenEvents; k < kinds; k++ {
		require.NotEmpty(t, k.String())
		require.Equal(t, k == TokenEvents, k.Client() == "", k)
		require.Equal(t, k == TokenEvents, len(k.Gaps()) == 0, k)
		for _, gap := range k.Gaps() {
			require.NotEmpty(t, gap.Missing)
			require.NotEmpty(t, gap.Effect)
		}
	}
}

func TestParseSeconds(t *testing.T) {
	for text, expected := range map[string]int64{
		"0": 0, "1": 1e9, "0.25": 25e7, "1768932693.1686244": 1_768_932_693_168_624_400, "0.0000000014": 1, "0.0000000015": 2,
		"-1.5": -15e8, "2.5e-05": 25_000, "1E2": 1e11, "0.99999999999": 1e9,
	} {
		ns, ok := parseSeconds([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, expected, ns, text)
	}
	for _, text := range []string{`"x"`, "true", "1e300", "99999999999999999999", "{}", "1.2.3"} {
		_, ok := parseSeconds([]byte(text))
		require.False(t, ok, text)
	}
}

// Python's constants become null, wherever a read ends, and strings stay.
func TestPythonJSON(t *testing.T) {
	const text = `{"a":NaN,"b":[-Infinity,Infinity,-1.5,-2],"c":"NaN -Infinity \" \\","d":{"e":NaN}}`
	const expected = `{"a":null,"b":[null,null,-1.5,-2],"c":"NaN -Infinity \" \\","d":{"e":null}}`
	for size := 1; size < len(text); size++ {
		var out bytes.Buffer
		_, err := out.ReadFrom(&pythonJSON{source: &pieces{[]byte(text), size}})
		require.NoError(t, err)
		require.Equal(t, expected, out.String(), "read by %d bytes", size) //nolint:testifylint // byte for byte
	}
}

// pieces is read in pieces of a size.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	return bytes.NewReader(p.take(min(p.size, len(b)))).Read(b)
}

func (p *pieces) take(n int) []byte {
	n = min(n, len(p.rest))
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

// Whatever a file of a tool holds, no token arrives before its request starts.
func FuzzScan(f *testing.F) {
	f.Add([]byte(vllmResult))
	f.Add([]byte(`{"backend":"sglang","dataset_name":"d","output_lens":[6],"ttfts":[0.5],"itls":[[0.01,0.01]],"errors":["Traceback\nx.TimeoutError: y"]}`))
	f.Add([]byte(`{"benchmarks":[{"requests":{"successful":[{"request_id":"r","info":{"timings":{"request_start":1700000000.5,"request_end":1700000002,"first_token_iteration":1700000001,"last_token_iteration":1700000001.5,"token_iterations":3}}}],"errored":[{"start_time":5,"error":"x"}]}}]}`))
	f.Add([]byte("benchmarks:\n- requests:\n    incomplete:\n    - {start_time: 1, end_time: 2}\n"))
	f.Add([]byte(`[{"start_time":1,"end_time":2.5,"request":"{\"model\":\"m\"}","info":{"output_token_times":[1.5,1.5,2],"output_tokens":3},"error":null},{"start_time":1,"end_time":2,"error":{"error_type":"HTTP Error 429"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, ok := Detect(data[:min(len(data), DetectBytes)])
		if !ok {
			return
		}
		scanner := Scanner{Damaged: func(error) error { return nil }}
		_ = scanner.Scan(t.Context(), bytes.NewReader(data), k, func(s *stream.Stream) error {
			require.NotEmpty(t, s.ID)
			if k == TokenEvents {
				return nil
			}
			require.Positive(t, s.Start)
			for _, c := range s.Chunks {
				require.GreaterOrEqual(t, c.Time, s.Start)
				require.Positive(t, c.Tokens)
			}
			return nil
		})
	})
}
