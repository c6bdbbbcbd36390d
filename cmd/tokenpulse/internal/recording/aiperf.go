// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// aiperf reads AIPerf's profile_export.jsonl, one request per line.
//
// A record counts the reasoning tokens but does not mark them. The reader assumes
// that they come first, or that all chunks are reasoning if the record has no
// output_token_count. Each chunk holds one token.
type aiperf struct{}

var aiperfGaps = []Gap{
	{"the tokens of a chunk", "each counts as one, so inter-token latency is that between chunks; time per output token is exact"},
	{"which chunks are reasoning", "the first ones are taken, as many as the tokens of reasoning: time to first output token is an estimate"},
	{"tokens of failed and cancelled requests", "they have no time to first token"},
	{"the queue", "prefill is time to first token"},
}

type aiperfRecord struct {
	Metadata struct {
		RequestID   string `json:"x_request_id"`
		StartNs     int64  `json:"request_start_ns"`
		TimestampNs int64  `json:"timestamp_ns"` // StartNs before AIPerf 0.2
		EndNs       int64  `json:"request_end_ns"`
		Cancelled   bool   `json:"was_cancelled"`
		CancelledNs int64  `json:"cancellation_time_ns"`
	} `json:"metadata"`
	Metrics struct {
		TTFT              *metric[float64]   `json:"time_to_first_token"`
		FormerTTFT        *metric[float64]   `json:"ttft"`
		InterChunkLatency *metric[[]float64] `json:"inter_chunk_latency"`
		RequestLatency    *metric[float64]   `json:"request_latency"`
		MaxResponse       *metric[int64]     `json:"max_response_timestamp"`
		InputTokens       *metric[float64]   `json:"input_sequence_length"`
		OutputTokens      *metric[float64]   `json:"output_sequence_length"`
		AnswerTokens      *metric[float64]   `json:"output_token_count"`
		ReasoningTokens   *metric[float64]   `json:"reasoning_token_count"`
	} `json:"metrics"`
	Error *struct {
		Code    int    `json:"code"`
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

type metric[T any] struct {
	Value T      `json:"value"`
	Unit  string `json:"unit"`
}

// clientClosedRequest is the status code that AIPerf records for a cancellation.
const clientClosedRequest = 499

func (aiperf) open() []*stream.Stream { return nil }

func (aiperf) read(line []byte) (*stream.Stream, error) {
	var record aiperfRecord
	if err := json.Unmarshal(line, &record); err != nil {
		return nil, fmt.Errorf("not an AIPerf record: %w", err)
	}
	if record.Metadata.RequestID == "" {
		return nil, errors.New("the AIPerf record has no metadata.x_request_id")
	}
	if record.start() <= 0 {
		return nil, errors.New("the AIPerf record has no metadata.request_start_ns, nor the former metadata.timestamp_ns")
	}
	chunks, err := record.chunks()
	if err != nil {
		return nil, err
	}
	end, err := record.end()
	if err != nil {
		return nil, err
	}
	return &stream.Stream{
		ID:         record.Metadata.RequestID,
		Vantage:    timeline.VantageClient,
		Attributes: stream.Attributes{names.GenAIOperationName: "chat"},
		Start:      record.start(),
		Chunks:     chunks,
		Arrivals:   stream.Uncounted,
		End:        end,
	}, nil
}

func (r *aiperfRecord) start() int64 { return cmp.Or(r.Metadata.StartNs, r.Metadata.TimestampNs) }

func (r *aiperfRecord) chunks() ([]stream.Chunk, error) {
	first := cmp.Or(r.Metrics.TTFT, r.Metrics.FormerTTFT)
	if first == nil {
		return nil, nil
	}
	latencies := []float64{first.Value}
	if err := checkUnit("time to first token", first.Unit); err != nil {
		return nil, err
	}
	if gaps := r.Metrics.InterChunkLatency; gaps != nil {
		latencies = append(latencies, gaps.Value...)
		if err := checkUnit("inter_chunk_latency", gaps.Unit); err != nil {
			return nil, err
		}
	}
	reasoning := r.reasoningChunks(len(latencies))
	chunks := make([]stream.Chunk, len(latencies))
	at := r.start()
	for i, ms := range latencies {
		gap, err := nanoseconds(ms)
		if err != nil {
			return nil, err
		}
		at += gap
		chunks[i] = stream.Chunk{Time: at, Tokens: 1, Sequence: uint64(i), Sequenced: true}
		if i < reasoning {
			chunks[i].Channel = timeline.Reasoning
		}
	}
	return chunks, nil
}

func (r *aiperfRecord) reasoningChunks(chunks int) int {
	switch {
	case r.Metrics.ReasoningTokens == nil || r.Metrics.ReasoningTokens.Value == 0:
		return 0
	case r.Metrics.AnswerTokens == nil:
		return chunks
	default:
		return int(r.Metrics.ReasoningTokens.Value)
	}
}

func (r *aiperfRecord) end() (*stream.End, error) {
	if r.Error != nil || r.Metadata.Cancelled {
		return r.failure()
	}
	end := &stream.End{
		Usage: &stream.Usage{
			InputTokens:     tokens(r.Metrics.InputTokens),
			OutputTokens:    tokens(r.Metrics.OutputTokens), // includes reasoning
			ReasoningTokens: tokens(r.Metrics.ReasoningTokens),
		},
	}
	switch {
	case r.Metrics.MaxResponse != nil:
		end.Time = r.Metrics.MaxResponse.Value
	case r.Metrics.RequestLatency != nil:
		if err := checkUnit("request_latency", r.Metrics.RequestLatency.Unit); err != nil {
			return nil, err
		}
		latency, err := nanoseconds(r.Metrics.RequestLatency.Value)
		if err != nil {
			return nil, err
		}
		end.Time = r.start() + latency
	default:
		end.Time = max(r.Metadata.EndNs, 0)
	}
	return end, nil
}

// cancelledAfter matches the error message, the only field with the duration of a
// cancelled request.
var cancelledAfter = regexp.MustCompile(`cancelled after (\d+\.?\d*) seconds`)

func (r *aiperfRecord) failure() (*stream.End, error) {
	if !r.Metadata.Cancelled && r.Error.Code != clientClosedRequest {
		end := failed(r.Error.Type, r.Error.Code)
		end.Time = max(r.Metadata.EndNs, 0)
		return end, nil
	}
	end := &stream.End{Time: cmp.Or(max(r.Metadata.CancelledNs, 0), max(r.Metadata.EndNs, 0), r.start()), Cancelled: true}
	if r.Error == nil || end.Time > r.start() {
		return end, nil
	}
	if found := cancelledAfter.FindStringSubmatch(r.Error.Message); found != nil {
		seconds, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return nil, fmt.Errorf("duration in %q: %w", found[0], err)
		}
		after, err := nanoseconds(seconds * 1e3)
		if err != nil {
			return nil, err
		}
		end.Time += after
	}
	return end, nil
}

func checkUnit(name, unit string) error {
	if unit != "ms" {
		return fmt.Errorf("%s is in %q; only exports in \"ms\" are supported", name, unit)
	}
	return nil
}

// nanoseconds rounds, which restores the whole nanoseconds that AIPerf measured.
func nanoseconds(ms float64) (int64, error) {
	ns := math.Round(ms * float64(time.Millisecond))
	const day = float64(24 * time.Hour)
	if !(ns >= 0 && ns <= day) {
		return 0, fmt.Errorf("a latency is %g ms; supported are 0 to 24 hours", ms)
	}
	return int64(ns), nil
}

func tokens(m *metric[float64]) *uint64 {
	if m == nil || m.Value < 0 {
		return nil
	}
	return new(uint64(m.Value))
}
