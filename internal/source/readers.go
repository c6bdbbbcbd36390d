// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// readers has a line for each instrumentation. At most one of them claims a span, apart from the
// last two: they claim any remaining model call that follows the OpenTelemetry conventions. The first
// three claim spans with a timeline, whichever instrumentation sent the rest of the span.
var readers = []reader{
	tokenStream,
	tokenTap,
	chunkOffsets,
	vllm,
	sglang,
	tensorRTLLM,
	tgi,
	dynamo,
	llmD,
	envoyAIGateway,
	liteLLM,
	vercelAI,
	langSmith,
	langfuse,
	mastra,
	openInference,
	openLIT,
	openLLMetry,
	claudeCode,
	agentgateway,
	bifrost,
	pipecat,
	copilotChat,
	braintrust,
	logfire,
	spanEvents,
	semconv,
}

const (
	// tokenStreamReader is the index of the reader of token_stream's spans.
	tokenStreamReader = 0
	// noReader is the index for a span that no reader claims.
	noReader = -1
)

// Names returns the value of the attribute names.Source for each reader.
func Names() []string {
	all := make([]string, len(readers))
	for i, r := range readers {
		all[i] = r.name
	}
	return all
}

// hint is a sign, with a bit for each reader that has it.
type hint struct {
	*sign
	readers uint64
}

// hints holds every sign of every reader by its attribute.
var hints = func() *names.Lookup[[]hint] {
	byKey := map[string][]hint{}
	for i, r := range readers {
		for _, s := range r.signs {
			same := slices.IndexFunc(byKey[s.key], func(h hint) bool { return h.sign == s })
			if same < 0 {
				same = len(byKey[s.key])
				byKey[s.key] = append(byKey[s.key], hint{sign: s})
			}
			byKey[s.key][same].readers |= 1 << i
		}
	}
	return names.NewLookup(byKey)
}()

// look returns a span as a candidate, with a bit for each reader that the span has a sign of. It is
// called for every span of every batch, so it is fast and does not allocate.
func look(scope string, span ptrace.Span) (c candidate, seen uint64) {
	var lengths, initials uint64
	for key, v := range span.Attributes().All() {
		lengths |= 1 << (len(key) % 64)
		if len(key) > 0 {
			initials |= 1 << (key[0] % 64)
		}
		if known := hints.Get(key); known != nil {
			for _, h := range *known {
				if h.matches == nil || h.matches(v) {
					seen |= h.readers
				}
			}
		}
	}
	return candidate{scope, span, lengths, initials}, seen
}

// match returns the index of the first reader in seen that claims the span, or noReader.
func match(c candidate, seen uint64) int {
	for ; seen != 0; seen &= seen - 1 {
		i := bits.TrailingZeros64(seen)
		if r := &readers[i]; r.claims == nil || r.claims(c) {
			return i
		}
	}
	return noReader
}
