// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// filled lists the standard attributes that are written if a span has them only under an alias.
var filled = [...]names.Standard{
	names.OperationName, names.ProviderName, names.RequestModel,
	names.InputTokens, names.OutputTokens, names.ReasoningTokens, names.CacheReadInputTokens, names.CacheWriteInputTokens,
	names.TimeToFirstChunk,
}

// putStandard writes the filled attributes. It never changes one that the span already has.
func putStandard(attributes pcommon.Map, observed *source.Observation) {
	for _, standard := range filled {
		reported := &observed.Standard[standard]
		if !reported.Known || reported.Rank == 0 {
			continue
		}
		v, ok := attributes.GetOrPutEmpty(names.Aliases[standard][0])
		switch {
		case ok:
		case standard == names.TimeToFirstChunk:
			v.SetDouble(reported.Duration.Seconds())
		case reported.Text != "":
			v.SetStr(reported.Text)
		default:
			v.SetInt(reported.Tokens)
		}
	}
}
