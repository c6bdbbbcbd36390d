// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tensorRTLLM reads the request spans of TensorRT-LLM, whose only phase is the queue. It also claims
// the spans of unknown engines that report a time to first token and a duration under the same names.
var tensorRTLLM = reader{
	name:    names.SourceTensorRTLLM,
	vantage: timeline.VantageEngine,
	signs:   engineSigns,
	claims: func(c candidate) bool {
		if isTensorRT(c) {
			return true
		}
		known := isVLLM(c) || isSGLang(c) || c.has(names.GenAIOperationName, names.OpenInferenceSpanKind)
		return !known && c.has(engineTimeToFirstToken) && c.has(engineEndToEnd)
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		if v.Double() != unmeasured {
			readEngine(o, key, v)
		}
	},
}

// unmeasured is the value that TensorRT-LLM writes for a time that it did not measure.
const unmeasured = -1

func isTensorRT(c candidate) bool {
	return c.scope == "trt.llm" || c.has(engineCacheTransfer) && !c.has(names.GenAIOperationName, names.OpenInferenceSpanKind)
}
