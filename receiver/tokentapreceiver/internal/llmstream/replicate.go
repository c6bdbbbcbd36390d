// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

// Replicate is the format of Replicate's streams.
const Replicate Format = "replicate"

var replicate = &answerFormat{
	name:      Replicate,
	newReader: stateless(readReplicate),
	plainText: func(e event) bool { return string(e.name) == "output" },
}

// readReplicate reads Replicate's streams, whose data is plain text.
func readReplicate(e event, _ value, r *record) {
	switch string(e.name) {
	case "output":
		if len(e.data) > 0 {
			r.token(Content)
		}
	case "done":
		r.end()
	}
}
