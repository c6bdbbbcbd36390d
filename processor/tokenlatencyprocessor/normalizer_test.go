// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
)

// normalized lists renames that the documentation of contrib's gen_ai_normalizer processor has for
// OpenInference and OpenLLMetry.
var normalized = map[string]string{
	"llm.token_count.prompt": "gen_ai.usage.input_tokens", "llm.token_count.completion": "gen_ai.usage.output_tokens",
	"llm.model_name": "gen_ai.request.model", "llm.provider": "gen_ai.provider.name", "openinference.span.kind": "gen_ai.operation.name",
	"llm.usage.prompt_tokens": "gen_ai.usage.input_tokens", "llm.usage.completion_tokens": "gen_ai.usage.output_tokens",
	"llm.request.model": "gen_ai.request.model", "llm.request.type": "gen_ai.operation.name",
}

// normalize does with spans what gen_ai_normalizer documents. It stands in for the processor, whose
// module does not resolve.
func normalize(traces ptrace.Traces, removeOriginals bool) {
	for _, span := range spansOf(traces) {
		attributes := span.Attributes()
		before := pcommon.NewMap()
		attributes.CopyTo(before)
		for key, v := range before.All() {
			standard, known := normalized[key]
			if !known {
				continue
			}
			if target, exists := attributes.GetOrPutEmpty(standard); !exists {
				v.CopyTo(target)
				if v.Str() == "LLM" {
					target.SetStr("chat")
				}
			}
			if removeOriginals {
				attributes.Remove(key)
			}
		}
	}
}

func TestNormalizer_BehindTokenLatencyChangesNoNumber(t *testing.T) {
	const before, after, beforeWithRemoval = "before", "after", "before, with remove_originals"
	for _, folder := range []string{"openinference_python", "openinference_responses", "openllmetry_python", "openllmetry_old_names"} {
		numbers := map[string]map[string]any{}
		for _, order := range []string{"none", before, after, beforeWithRemoval} {
			traces := golden.ReadTraces(t, filepath.Join("testdata", folder, "input.yaml"))
			if order == before || order == beforeWithRemoval {
				normalize(traces, order == beforeWithRemoval)
			}
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
			require.NoError(t, p.ConsumeTraces(t.Context(), traces))
			out := sink.AllTraces()[0]
			if order == after {
				normalize(out, true)
			}
			numbers[order] = map[string]any{}
			for i, span := range spansOf(out) {
				for key, v := range span.Attributes().AsRaw() {
					if strings.HasPrefix(key, names.Prefix) {
						numbers[order][fmt.Sprint(i, " ", key)] = v
					}
				}
			}
		}
		require.NotEmpty(t, numbers["none"])
		require.Equal(t, numbers["none"], numbers[before], folder)
		require.Equal(t, numbers["none"], numbers[after], folder)
		if lost := numbers[beforeWithRemoval]; strings.HasPrefix(folder, "openinference") {
			require.Contains(t, slices.Collect(maps.Values(lost)), names.SourceSemconv, folder)
			require.NotContains(t, strings.Join(slices.Collect(maps.Keys(lost)), " "), "time_to_first_token", folder)
		} else {
			require.Equal(t, numbers["none"], lost, folder)
		}
	}
}
