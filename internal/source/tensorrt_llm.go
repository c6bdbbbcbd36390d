package source

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// tensorRTLLM reads the request spans of TensorRT-LLM, which measures no phase
// but the queue. It also takes an engine's measurements under a name that nobody
// knows: they mean the same.
var tensorRTLLM = reader{
	name:    names.SourceTensorRTLLM,
	vantage: names.VantageEngine,
	signs:   engineSigns,
	claims: func(c candidate) bool {
		if saysTensorRT(c) {
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

// unmeasured is what TensorRT-LLM writes for what it did not measure.
const unmeasured = -1

func saysTensorRT(c candidate) bool {
	return c.scope == "trt.llm" || c.has(engineCacheTransfer) && !c.has(names.GenAIOperationName, names.OpenInferenceSpanKind)
}
