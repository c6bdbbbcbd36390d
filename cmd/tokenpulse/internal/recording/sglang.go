// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// sglangBench reads what SGLang's bench_serving writes with --output-details. The tool takes the time of each message with
// text.
var sglangBench = &benchFormat{
	tool:      "sglang bench",
	noDetails: "the result has no requests; run sglang.bench_serving with --output-details",
	failed:    stream.Uncounted,
	stream: func(run *benchRun, i int, s *stream.Stream) {
		switch {
		case !run.streamed():
			s.Attributes[names.GenAIRequestStream] = false
			s.End.Time = s.LastTime()
			s.Chunks = nil
		case run.backend == "sglang" || run.backend == "sglang-native":
			s.Chunks = bundle(s.Chunks, run.itls[i])
			if n, first := s.End.Usage.OutputTokens, len(run.itls[i]); n != nil && len(s.Chunks) > 0 && *n > uint64(first) {
				s.Chunks[0].Tokens = uint32(min(*n-uint64(first), timeline.MaxTokensPerChunk))
			}
		default:
			s.Arrivals = stream.Uncounted
		}
	},
}

// streamed reports whether the run asked for streams. With --disable-stream, the time of a whole answer is its time to
// first token, and no answer has a gap.
func (run *benchRun) streamed() bool {
	long := len(run.itls) == 0
	for i, gaps := range run.itls {
		if len(gaps) > 0 {
			return true
		}
		long = long || len(run.outputLens) > 0 && run.outputLens[i] > 1
	}
	return !long
}

// bundle joins the chunks that arrived together. The tool divides the gap before a message by its tokens, and lists the
// result for each of them: equal gaps that follow each other are of one message. Two single tokens with the same gap, to
// the nanosecond, become a message of two, which has the same inter-token latency.
func bundle(chunks []stream.Chunk, gaps []seconds) []stream.Chunk {
	if len(chunks) == 0 {
		return nil
	}
	bundled := chunks[:1]
	for i, c := range chunks[1:] {
		last := &bundled[len(bundled)-1]
		if i > 0 && gaps[i] == gaps[i-1] && last.Tokens < timeline.MaxTokensPerChunk {
			last.Time, last.Tokens = c.Time, last.Tokens+1
			continue
		}
		bundled = append(bundled, c)
	}
	return bundled
}

var sglangGaps = []Gap{
	{"the tokens of a chunk, with other backends than sglang", "each counts as one, so inter-token latency is that between chunks; time per output token divides by the tokens of the answer"},
	{"the chunks, with the backend sglang", "equal gaps that follow each other are one chunk: the tool spreads the gap before a chunk over its tokens"},
	{"which chunks are reasoning", "time to first output token is time to first token"},
	{"the end of a request", "it ends with the last token"},
	{"tokens and duration of failed requests", "they have none"},
	{"when requests start", "all requests start at once"},
	{"the queue", "prefill is time to first token"},
}
