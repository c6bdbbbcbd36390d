// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// vllm reads the request spans of vLLM. They begin when the request arrives.
var vllm = reader{
	name:      names.SourceVLLM,
	vantage:   timeline.VantageEngine,
	signs:     engineSigns,
	claims:    isVLLM,
	attribute: readEngine,
}

func isVLLM(c candidate) bool { return c.span.Name() == "llm_request" && !isTensorRT(c) }
