// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const langSmithKind = "langsmith.span.kind"

// langSmith reads the spans of LangSmith. Prompts and chains also have the operation chat, so only
// LangSmith's own kind identifies a model call.
var langSmith = reader{
	name:              names.SourceLangSmith,
	vantage:           timeline.VantageClient,
	signs:             []*sign{{langSmithKind, oneOf("llm")}},
	firstChunkIsFrame: true,
}
