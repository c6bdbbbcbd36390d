// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokenevents writes token events that a test sends.
package tokenevents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// Writer writes an event of a stream, at a time since the beginning of the traffic.
type Writer func(kind string, at time.Duration, more string)

// EventsOf returns a function that writes events of one stream.
func EventsOf(to io.Writer, stream string, begin time.Time) Writer {
	return func(kind string, at time.Duration, more string) {
		fmt.Fprintf(to, `{"event":%q,"stream_id":%q,"time_unix_nano":%d%s}`+"\n", kind, stream, begin.Add(at).UnixNano(), more)
	}
}

// Line returns an event as a line of NDJSON.
func Line(event, id string, at time.Time, more string) string {
	return fmt.Sprintf(`{"event":%q,"stream_id":%q,"time_unix_nano":"%d"%s}`, event, id, at.UnixNano(), more)
}

// Chunks returns chunks numbered from first.
func Chunks(id string, begin time.Time, first, count int) (lines []string) {
	for i := first; i < first+count; i++ {
		lines = append(lines, Line("chunk", id, begin.Add(time.Duration(i)*time.Millisecond), fmt.Sprintf(`,"seq":%d`, i)))
	}
	return lines
}

// PostLines sends events and returns how many the Collector rejected.
func PostLines(address, lines string) (rejected int, err error) {
	response, err := http.Post("http://"+address+"/v1/tokens", "application/x-ndjson", strings.NewReader(lines))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	var answer struct{ Rejected int }
	err = json.Unmarshal(body, &answer)
	// 400 if none of the events is accepted: one end, sent again after its stream has ended
	if all := response.StatusCode == http.StatusBadRequest && answer.Rejected > 0; !all && response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", response.Status, body)
	}
	return answer.Rejected, err
}

// KeyValue returns an attribute with a text.
func KeyValue(key, text string) *commonv1.KeyValue {
	return &commonv1.KeyValue{Key: key, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: text}}}
}

// Pooled returns the sorted values of all successful requests, in seconds.
func Pooled(requests []*reference.Recorded) map[string][]float64 {
	all := map[string][]float64{}
	for _, r := range requests {
		if r.Cancelled {
			continue
		}
		answer := reference.Of(&r.Stream, reference.Usual)
		for name, attribute := range map[string]string{
			"time_to_first_token": "time_to_first_token", "time_per_output_token": "time_per_output_token", "request_duration": "request.duration",
		} {
			all[name] = append(all[name], answer.Numbers["tokenpulse."+attribute].Value)
		}
		all["inter_chunk_latency"] = append(all["inter_chunk_latency"], reference.Values(answer.InterChunk)...)
		all["inter_token_latency"] = append(all["inter_token_latency"], reference.Values(answer.InterToken)...)
	}
	for _, values := range all {
		slices.Sort(values)
	}
	return all
}
