package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// filled lists the standard attributes that are written where a span has them
// only under an alias.
var filled = [...]names.Standard{
	names.OperationName, names.ProviderName, names.RequestModel,
	names.InputTokens, names.OutputTokens, names.ReasoningTokens, names.CacheReadInputTokens,
	names.TimeToFirstChunk,
}

// putStandard writes them. What a span says under the standard name stays,
// whatever it is.
func putStandard(attributes pcommon.Map, observed *source.Observation) {
	for _, standard := range filled {
		told := &observed.Standard[standard]
		if !isAlias(told) {
			continue
		}
		v, there := attributes.GetOrPutEmpty(names.Aliases[standard][0])
		switch {
		case there:
		case standard == names.TimeToFirstChunk:
			v.SetDouble(told.Duration.Seconds())
		case told.Text != "":
			v.SetStr(told.Text)
		default:
			v.SetInt(told.Tokens)
		}
	}
}

// isAlias reports that a span says something under a name that is not the standard's.
func isAlias(told *source.Told) bool { return told.Known && told.Rank > 0 }
