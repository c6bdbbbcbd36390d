package source

import "github.com/tokenpulse/tokenpulse/internal/names"

// vllm reads the request spans of vLLM. They begin with the request's arrival.
var vllm = reader{
	name:      names.SourceVLLM,
	vantage:   names.VantageEngine,
	signs:     engineSigns,
	claims:    isVLLM,
	attribute: readEngine,
}

func isVLLM(c candidate) bool { return c.span.Name() == "llm_request" && !saysTensorRT(c) }
