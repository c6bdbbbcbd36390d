// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/hex"
	"math"
	"net/http"
	"net/url"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

type requests struct {
	scope
	Slowest  string           `json:"slowest"`
	Requests []requestNumbers `json:"requests"`
}

type requestNumbers struct {
	ID                 string            `json:"id"`
	Time               number            `json:"time"`
	Dimensions         map[string]string `json:"dimensions"`
	Vantage            string            `json:"vantage"`
	Outcome            string            `json:"outcome"`
	TraceID            *string           `json:"trace_id"`
	SpanID             *string           `json:"span_id"`
	TraceLink          *string           `json:"trace_link"`
	ErrorType          *string           `json:"error_type"`
	Status             *string           `json:"status"`
	Replica            *string           `json:"replica"`
	Source             *string           `json:"source"`
	Estimated          []string          `json:"estimated"`
	Reason             *string           `json:"reason"`
	RequestDuration    number            `json:"request_duration"`
	TimeToFirstToken   number            `json:"time_to_first_token"`
	TimePerOutputToken number            `json:"time_per_output_token"`
	Queue              number            `json:"queue"`
	Prefill            number            `json:"prefill"`
	Decode             number            `json:"decode"`
	Network            number            `json:"network"`
	Transfer           number            `json:"transfer"`
	InputTokens        number            `json:"input_tokens"`
	CachedInputTokens  number            `json:"cached_input_tokens"`
	OutputTokens       number            `json:"output_tokens"`
	Stalls             number            `json:"stalls"`
	StallDuration      number            `json:"stall_duration"`
	LargestGap         number            `json:"largest_gap"`
	OpenTail           number            `json:"open_tail"`
	TimePerToken       []timePerToken    `json:"time_per_token"`
	SLOsBreached       []string          `json:"slos_breached"`
	HasStrip           bool              `json:"has_strip"`
}

// timePerToken is the mean time per token of the tokens at some positions of the answer.
type timePerToken struct {
	Position string `json:"position"`
	Mean     number `json:"mean"`
}

func (p *Page) requests(q *query) (any, error) {
	var names []string
	for _, quantity := range slowest.Quantities {
		names = append(names, quantity.APIName())
	}
	by, err := q.choice(paramSlowest, names, 0)
	if err != nil {
		return nil, err
	}
	limit, err := q.number(paramLimit, 20, 100)
	if err != nil {
		return nil, err
	}
	answer := &requests{scope: q.scope(), Slowest: names[by], Requests: []requestNumbers{}}
	age := q.period.length
	if q.ended {
		age = q.asked.Sub(q.view.From)
	}
	for _, r := range p.Slowest.Slowest(slowest.WindowOf(age), by, limit, func(r *slowest.Entry) bool {
		id := series.Labels{Dimensions: r.Dimensions, Vantage: r.Vantage}
		return q.filter.outcomes[r.Outcome] && !r.Arrival.Before(q.view.From) && !r.Arrival.After(q.view.Until) && q.filter.selects(&id)
	}) {
		answer.Requests = append(answer.Requests, p.numbersOf(r, nil))
	}
	return answer, nil
}

func (p *Page) request(q *query) (any, error) {
	r := p.Slowest.Find(q.id)
	if r == nil {
		return nil, &failure{
			Status: http.StatusNotFound, Message: "no request with this ID is held",
			Remedy: "take an ID from " + root + "requests: only the slowest requests of the last 24 hours are held, and none from before a restart",
		}
	}
	chunks := r.Strip(maxChunks)
	return map[string]any{"request": p.numbersOf(r, chunks), "strip": newStrip(chunks)}, nil
}

// numbersOf returns the numbers of a request, whose chunks may be nil.
func (p *Page) numbersOf(r *slowest.Entry, chunks *slowest.Strip) requestNumbers {
	value := func(q numbers.ID) number { return number(r.Value(q)) }
	n := requestNumbers{
		ID: r.ID(), Time: seconds(r.Arrival), Dimensions: map[string]string{}, Vantage: r.Vantage, Outcome: series.OutcomeNames[r.Outcome],
		ErrorType: known(r.ErrorType), Status: known(r.Status), Replica: known(r.Replica), Source: known(r.Source),
		Estimated: append([]string{}, r.Estimated...), Reason: known(r.Reason()), RequestDuration: value(numbers.RequestDuration),
		TimeToFirstToken: value(numbers.TimeToFirstToken), TimePerOutputToken: value(numbers.TimePerOutputToken),
		Queue: value(numbers.QueueDuration), Prefill: value(numbers.PrefillDuration), Decode: value(numbers.DecodeDuration), Network: value(numbers.NetworkDuration),
		Transfer:    value(numbers.TransferDuration),
		InputTokens: number(r.InputTokens), CachedInputTokens: number(r.CachedTokens), OutputTokens: number(r.OutputTokens),
		Stalls: number(r.Stalls), StallDuration: number(r.StallSeconds), LargestGap: number(r.LongestGap(chunks)), OpenTail: number(r.OpenTail()),
		TimePerToken: timePerTokenOf(r), SLOsBreached: append([]string{}, r.Breached...), HasStrip: len(r.Timeline) > 0,
	}
	for i, name := range p.dimensions {
		if r.Dimensions[i] != "" {
			n.Dimensions[name] = r.Dimensions[i]
		}
	}
	if r.TraceID != [16]byte{} {
		trace, span := hex.EncodeToString(r.TraceID[:]), hex.EncodeToString(r.SpanID[:])
		n.TraceID, n.SpanID = &trace, &span
		if p.TraceLink != "" {
			link := strings.NewReplacer("{trace_id}", url.QueryEscape(trace), "{span_id}", url.QueryEscape(span)).Replace(p.TraceLink)
			n.TraceLink = &link
		}
	}
	return n
}

// timePerTokenOf returns the mean time per token of each part of the answer that is known. It needs `detail: full` of token_latency.
func timePerTokenOf(r *slowest.Entry) []timePerToken {
	all := []timePerToken{}
	for id := numbers.TimePerTokenFrom0; id <= numbers.TimePerTokenFrom1000; id++ {
		if v := number(r.Value(id)); !math.IsNaN(float64(v)) {
			all = append(all, timePerToken{id.Row().Position, v})
		}
	}
	return all
}

// known returns nil for an empty text.
func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
