// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
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
type aiperf struct {
	requests []*stream.Stream
}

type aiperfRecord struct {
	Metadata struct {
		RequestID   string `json:"x_request_id"`
		TimestampNs int64  `json:"timestamp_ns"`
	} `json:"metadata"`
	Metrics struct {
		TTFT              *metric[float64]   `json:"ttft"`
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

func (r *aiperf) streams() []*stream.Stream { return r.requests }

func (r *aiperf) read(line []byte) error {
	var record aiperfRecord
	if err := json.Unmarshal(line, &record); err != nil {
		return fmt.Errorf("not an AIPerf record: %w", err)
	}
	if record.Metadata.RequestID == "" {
		return errors.New("the AIPerf record has no metadata.x_request_id")
	}
	if record.Metadata.TimestampNs <= 0 {
		return errors.New("the AIPerf record has no metadata.timestamp_ns")
	}
	chunks, err := record.chunks()
	if err != nil {
		return err
	}
	end, err := record.end()
	if err != nil {
		return err
	}
	r.requests = append(r.requests, &stream.Stream{
		ID:         record.Metadata.RequestID,
		Vantage:    timeline.VantageClient,
		Attributes: stream.Attributes{names.GenAIOperationName: "chat"},
		Start:      record.Metadata.TimestampNs,
		Chunks:     chunks,
		End:        end,
	})
	return nil
}

func (r *aiperfRecord) chunks() ([]stream.Chunk, error) {
	if r.Metrics.TTFT == nil {
		return nil, nil
	}
	latencies := []float64{r.Metrics.TTFT.Value}
	if err := checkUnit("ttft", r.Metrics.TTFT.Unit); err != nil {
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
	at := r.Metadata.TimestampNs
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
	if r.Error != nil {
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
		end.Time = r.Metadata.TimestampNs + latency
	}
	return end, nil
}

// cancelledAfter matches the error message, the only field with the duration of a
// cancelled request.
var cancelledAfter = regexp.MustCompile(`cancelled after (\d+\.?\d*) seconds`)

func (r *aiperfRecord) failure() (*stream.End, error) {
	if r.Error.Code != clientClosedRequest {
		return &stream.End{Error: fmt.Sprintf("%s (code %d)", r.Error.Type, r.Error.Code)}, nil
	}
	end := &stream.End{Time: r.Metadata.TimestampNs, Cancelled: true}
	if found := cancelledAfter.FindStringSubmatch(r.Error.Message); found != nil {
		seconds, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return nil, fmt.Errorf("duration in %q: %w", r.Error.Message, err)
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
