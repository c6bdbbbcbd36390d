package source

import "github.com/tokenpulse/tokenpulse/internal/names"

const langSmithKind = "langsmith.span.kind"

// langSmith reads the spans of LangSmith. It calls prompts and chains chats, too,
// so only its own kind tells a model call.
var langSmith = reader{
	name:              names.SourceLangSmith,
	vantage:           names.VantageClient,
	signs:             []*sign{{langSmithKind, oneOf("llm")}},
	firstChunkIsFrame: true,
}
