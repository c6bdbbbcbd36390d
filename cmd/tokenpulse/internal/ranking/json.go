// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ranking

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// list is a Ranking as JSON.
type list struct {
	Slowest    string  `json:"slowest"`
	Partial    bool    `json:"partial"`
	All        int64   `json:"requests_read"`
	Matched    int64   `json:"requests_matched"`
	Unmeasured int64   `json:"requests_unmeasured"`
	Requests   []entry `json:"requests"`
}

// entry is a request. Its keys are those of the API of the live page.
type entry struct {
	Start              time.Time `json:"start"`
	Model              *string   `json:"model"`
	Vantage            *string   `json:"vantage"`
	Outcome            string    `json:"outcome"`
	TraceID            string    `json:"trace_id"`
	SpanID             string    `json:"span_id"`
	ErrorType          *string   `json:"error_type"`
	Status             *string   `json:"status"`
	Replica            *string   `json:"replica"`
	Source             *string   `json:"source"`
	Estimated          []string  `json:"estimated"`
	Reason             *string   `json:"reason"`
	RequestDuration    *float64  `json:"request_duration"`
	TimeToFirstToken   *float64  `json:"time_to_first_token"`
	TimePerOutputToken *float64  `json:"time_per_output_token"`
	Queue              *float64  `json:"queue"`
	Prefill            *float64  `json:"prefill"`
	Decode             *float64  `json:"decode"`
	Network            *float64  `json:"network"`
	Transfer           *float64  `json:"transfer"`
	InputTokens        *float64  `json:"input_tokens"`
	CachedInputTokens  *float64  `json:"cached_input_tokens"`
	OutputTokens       *float64  `json:"output_tokens"`
	Stalls             *float64  `json:"stalls"`
	StallDuration      *float64  `json:"stall_duration"`
	LargestGap         *float64  `json:"largest_gap"`
	SLOsBreached       []string  `json:"slos_breached"`
}

// WriteJSON writes the requests as JSON.
func (r *Ranking) WriteJSON(out io.Writer) error {
	l := list{Slowest: r.By.APIName(), Partial: r.Partial, All: r.Requests, Matched: r.Matched, Unmeasured: r.Unmeasured, Requests: []entry{}}
	for _, q := range r.Slowest() {
		l.Requests = append(l.Requests, entryOf(q))
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(l)
}

func entryOf(q *request.Request) entry {
	value := func(id numbers.ID) *float64 { return number(q.Value(id)) }
	return entry{
		Start: q.Start.UTC(), Model: text(q.Model), Vantage: text(q.Vantage), Outcome: series.OutcomeNames[q.Outcome],
		TraceID: hexOf(q.TraceID[:]), SpanID: hexOf(q.SpanID[:]),
		ErrorType: text(q.ErrorType), Status: text(q.Status), Replica: text(q.Replica), Source: text(q.Source),
		Estimated: append([]string{}, q.Estimated...), Reason: text(q.Reason()),
		RequestDuration: value(numbers.RequestDuration), TimeToFirstToken: value(numbers.TimeToFirstToken), TimePerOutputToken: value(numbers.TimePerOutputToken),
		Queue: value(numbers.QueueDuration), Prefill: value(numbers.PrefillDuration), Decode: value(numbers.DecodeDuration), Network: value(numbers.NetworkDuration),
		Transfer:    value(numbers.TransferDuration),
		InputTokens: number(q.InputTokens), CachedInputTokens: number(q.CachedTokens), OutputTokens: number(q.OutputTokens),
		Stalls: number(q.Stalls), StallDuration: number(q.StallSeconds), LargestGap: number(q.Gap),
		SLOsBreached: append([]string{}, q.Breached...),
	}
}

// text returns nil for an unknown text.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// number returns nil for an unknown number.
func number(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func hexOf(id []byte) string { return hex.EncodeToString(id) }
