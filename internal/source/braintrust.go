// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	braintrustMetrics = "braintrust.metrics"
	braintrustKind    = "braintrust.span_attributes"
)

// braintrust reads the spans of Braintrust's SDKs. Their values are JSON texts.
var braintrust = reader{
	name:    names.SourceBraintrust,
	vantage: timeline.VantageClient,
	signs: []*sign{
		{key: braintrustMetrics}, {key: braintrustMetrics + ".completion_tokens"}, {key: braintrustMetrics + ".time_to_first_token"},
	},
	claims: func(c candidate) bool {
		return strings.Contains(strings.ReplaceAll(c.text(braintrustKind), " ", ""), `"type":"llm"`) || !c.has(braintrustKind) && c.isModelCall()
	},
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case braintrustMetrics:
			o.readBraintrust(v)
		case "braintrust.metadata":
			var metadata struct{ Model, Provider string }
			if json.Unmarshal([]byte(v.Str()), &metadata) == nil {
				o.setText(names.RequestModel, readerRank, pcommon.NewValueStr(metadata.Model))
				o.setText(names.ProviderName, readerRank, pcommon.NewValueStr(metadata.Provider))
			}
		default:
			if name, ok := strings.CutPrefix(key, braintrustMetrics+"."); ok { // the SDK for C#
				o.readBraintrustMetric(name, v)
			}
		}
	},
}

// braintrustCounts has the names of counts in braintrust.metrics.
var braintrustCounts = map[string]names.Standard{
	"prompt_tokens": names.InputTokens, "completion_tokens": names.OutputTokens, "completion_reasoning_tokens": names.ReasoningTokens,
	"prompt_cached_tokens": names.CacheReadInputTokens, "prompt_cache_creation_tokens": names.CacheWriteInputTokens,
}

func (o *Observation) readBraintrust(v pcommon.Value) {
	var metrics map[string]float64
	if json.Unmarshal([]byte(v.Str()), &metrics) != nil {
		o.Unusable++
		return
	}
	for name, n := range metrics {
		o.readBraintrustMetric(name, pcommon.NewValueDouble(n))
	}
}

func (o *Observation) readBraintrustMetric(name string, v pcommon.Value) {
	if standard, ok := braintrustCounts[name]; ok {
		o.setTokens(standard, readerRank, v)
	} else if name == "time_to_first_token" {
		o.setFirstChunk(durationIn(time.Second, v, &o.Unusable), readerRank)
	}
}
