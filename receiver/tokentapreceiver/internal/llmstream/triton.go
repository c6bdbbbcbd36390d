// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// Triton is the format of Triton's generate extension.
const Triton Format = "triton"

var triton = &answerFormat{
	name: Triton,
	paths: []pathRule{
		{suffix: "/generate", within: "/models/", model: tritonModel, operation: operationCompletion},
		{suffix: "/generate_stream", within: "/models/", model: tritonModel, streams: true, operation: operationCompletion},
	},
	marks:     map[string]func(value) bool{"text_output": anyValue},
	newReader: stateless(readTriton),
}

func tritonModel(path, _ string) string { return segmentAfter(path, "/models/") }

// readTriton reads Triton's generate extension, with the times of the TensorRT-LLM
// backend.
func readTriton(_ event, v value, r *record) {
	var arrival, scheduled, first, last float64
	for name, m := range v.members {
		switch string(name) {
		case "text_output":
			r.text(Content, m)
			r.end() // no event says that it is the last
		case "model_name":
			r.model(m)
		case "id":
			r.id(m)
		case "arrival_time_ns":
			arrival, _ = m.float()
		case "first_scheduled_time_ns":
			scheduled, _ = m.float()
		case "first_token_time_ns":
			first, _ = m.float()
		case "last_token_time_ns":
			last, _ = m.float()
		}
	}
	if arrival > 0 {
		t := &r.observation.Timings
		setBetween(&t.Queue, arrival, scheduled)
		setBetween(&t.Prefill, scheduled, first)
		setBetween(&t.Decode, first, last)
		setBetween(&t.FirstToken, arrival, first)
	}
}

// setBetween sets the time between two points in nanoseconds that are in order.
func setBetween(d *optional.Value[time.Duration], from, to float64) {
	if from > 0 && to >= from && to-from <= float64(maxDuration) {
		*d = optional.Of(time.Duration(to - from))
	}
}
