// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// maxRequestBytes bounds a request, prompt and answer included, in a document that is read request by request. It is a
// variable for tests.
var maxRequestBytes int64 = 64 << 20

var inferencePerfGaps = []Gap{
	{"which chunks are reasoning", "time to first output token is time to first token"},
	{"the tokens of a chunk, in older versions", "each counts as one, so inter-token latency is that between chunks; time per output token divides by the tokens of the answer"},
	{"which tokens the service counted, if it reports none", "output tokens are those that the tool counts with its tokenizer"},
	{"tokens of failed requests", "they have no time to first token"},
	{"times of day", "times are those of the machine's clock since its start, from 2026-01-01 on"},
	{"the queue", "prefill is time to first token"},
}

// lifecycle is one request of inference-perf's per_request_lifecycle_metrics.json. Its times are of a clock that does not
// begin in 1970.
type lifecycle struct {
	Start   *seconds `json:"start_time"`
	End     *seconds `json:"end_time"`
	Request head     `json:"request"`
	Info    *struct {
		InputTokens  *count         `json:"input_tokens"`
		OutputTokens *count         `json:"output_tokens"`
		Times        []seconds      `json:"output_token_times"`
		Response     *lifecycleData `json:"response_metrics"`
	} `json:"info"`
	Error *struct {
		Type string `json:"error_type"`
	} `json:"error"`
}

// lifecycleData is what newer versions know of the answer.
type lifecycleData struct {
	OutputTokens *count    `json:"output_tokens"`
	Times        []seconds `json:"output_token_times"`
	ChunkTimes   []seconds `json:"chunk_times"`
	Usage        *struct {
		Prompt     *count `json:"prompt_tokens"`
		Completion *count `json:"completion_tokens"`
		// Input and Output are the names in Anthropic's API.
		Input         *count `json:"input_tokens"`
		Output        *count `json:"output_tokens"`
		PromptDetails *struct {
			Cached *count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails *struct {
			Reasoning *count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"server_usage"`
}

func (s *Scanner) inferencePerf(r io.Reader) error {
	document := newDocument(r, maxRequestBytes)
	return document.list(func(i int) error {
		var record lifecycle
		var one *stream.Stream
		err := document.value(&record)
		switch {
		case err == nil:
			one, err = record.stream(i)
		case !isValueError(err):
			return fmt.Errorf("request %d: %w", i+1, err)
		}
		document.renew()
		if err != nil {
			return s.damaged(fmt.Errorf("request %d: %w", i+1, err))
		}
		return s.emit(one)
	})
}

// modelKey matches the model in the body of a request, as JSON or as Python writes it.
var modelKey = regexp.MustCompile(`["']model["']:\s*["']([^"'\\]{1,200})["']`)

func modelIn(request head) string {
	if found := modelKey.FindStringSubmatch(string(request)); found != nil {
		return found[1]
	}
	return ""
}

func (r *lifecycle) stream(i int) (*stream.Stream, error) {
	if r.Start == nil || r.End == nil {
		return nil, errors.New("it has no start_time or no end_time")
	}
	duration, err := (*r.End - *r.Start).latency("end_time - start_time")
	if err != nil {
		return nil, err
	}
	start := epoch + int64(*r.Start)
	if *r.Start < 0 || start <= 0 {
		return nil, wrongValue("start_time is out of range")
	}
	s := &stream.Stream{
		ID: fmt.Sprintf("inference-perf request %d", i+1), Vantage: timeline.VantageClient,
		Attributes: stream.Attributes{names.GenAIOperationName: "chat"},
		Start:      start,
	}
	if model := modelIn(r.Request); model != "" {
		s.Attributes[names.GenAIRequestModel] = model
	}
	if r.Error != nil {
		s.End = failure(r.Error.Type)
	} else {
		s.End = &stream.End{Usage: r.usage()}
	}
	s.End.Time = start + duration
	times := r.times()
	if len(times) == 0 && r.Error == nil {
		s.Attributes[names.GenAIRequestStream] = false
		return s, nil
	}
	return s, r.chunks(s, times)
}

func (r *lifecycle) times() []seconds {
	switch info := r.Info; {
	case info == nil:
		return nil
	case info.Response == nil:
		return info.Times
	case len(info.Response.Times) > 0:
		return info.Response.Times
	default:
		return info.Response.ChunkTimes
	}
}

// chunks adds a chunk for each time. The tool repeats the time of a chunk for each token that its tokenizer finds in it;
// older versions do not.
func (r *lifecycle) chunks(s *stream.Stream, times []seconds) error {
	repeated := false
	for i, at := range times {
		since, err := (at - *r.Start).latency("output_token_times - start_time")
		if err != nil {
			return fmt.Errorf("token %d: %w", i+1, err)
		}
		if i > 0 && at == times[i-1] {
			repeated = true
			if last := &s.Chunks[len(s.Chunks)-1]; last.Tokens < timeline.MaxTokensPerChunk {
				last.Tokens++
				continue
			}
		}
		s.Chunks = append(s.Chunks, stream.Chunk{Time: s.Start + since, Tokens: 1})
	}
	counted := r.counted()
	if !repeated && (counted == nil || int(*counted) != len(times)) {
		s.Arrivals = stream.Uncounted
	}
	return nil
}

// counted returns the tokens that the tool found in the answer.
func (r *lifecycle) counted() *count {
	switch info := r.Info; {
	case info == nil:
		return nil
	case info.Response != nil:
		return info.Response.OutputTokens
	default:
		return info.OutputTokens
	}
}

func (r *lifecycle) usage() *stream.Usage {
	usage := &stream.Usage{OutputTokens: r.counted().pointer()}
	if r.Info == nil {
		return usage
	}
	usage.InputTokens = r.Info.InputTokens.pointer()
	if r.Info.Response == nil || r.Info.Response.Usage == nil {
		return usage
	}
	reported := r.Info.Response.Usage
	for _, n := range []*count{reported.Output, reported.Completion} {
		if n != nil {
			usage.OutputTokens = n.pointer()
		}
	}
	for _, n := range []*count{reported.Input, reported.Prompt} {
		if n != nil {
			usage.InputTokens = n.pointer()
		}
	}
	if reported.PromptDetails != nil {
		usage.CachedInputTokens = reported.PromptDetails.Cached.pointer()
	}
	if reported.CompletionDetails != nil {
		usage.ReasoningTokens = reported.CompletionDetails.Reasoning.pointer()
	}
	return usage
}
