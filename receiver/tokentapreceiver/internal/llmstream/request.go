// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// RequestFacts is what a request says about itself.
type RequestFacts struct {
	// Model is empty if only the answer names it.
	Model string
	// Stream is set if the request announces a stream.
	Stream bool
	// Operation is the value of gen_ai.operation.name, or empty.
	Operation string
	// Format is what the path stands for. It is empty if other services use the path, too.
	Format Format
	// Replayed is set for a request that reads an earlier response again.
	Replayed bool
}

// RequestOf reads a request. The body may be cut: what was read of it counts.
func RequestOf(path, rawQuery string, body []byte) RequestFacts {
	i := pathFacts(path, rawQuery)
	f := RequestFacts{Model: i.modelID, Operation: i.operation, Format: i.format.name, Replayed: i.replays}
	if i.shared {
		f.Format = ""
	}
	model, stream := requestBody(body)
	if f.Model == "" {
		f.Model = model
	}
	if i.streams {
		f.Stream = !stream.isFalse()
	} else {
		f.Stream = stream.isTrue() && !i.unary
	}
	return f
}

// requestBody returns the members model and stream of a JSON object that may be cut.
// Triton's stream is a member of parameters.
func requestBody(body []byte) (model string, stream value) {
	d := jsontext.NewDecoder(bytes.NewReader(body), lenient...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return "", nil
	}
	for {
		t, err := d.ReadToken()
		if err != nil || t.Kind() != '"' {
			return model, stream
		}
		name := t.String()
		if name != "model" && name != "model_id" && name != "stream" && name != "parameters" {
			if d.SkipValue() != nil {
				return model, stream
			}
			continue
		}
		raw, err := d.ReadValue()
		if err != nil {
			return model, stream
		}
		switch v := value(raw); name {
		case "stream":
			stream = v.clone()
		case "parameters":
			if inner := v.get("stream"); inner != nil {
				stream = inner.clone()
			}
		default:
			if v.isString() {
				model = v.name()
			}
		}
	}
}

func (v value) clone() value { return value(bytes.Clone(v)) }
