// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// SpanName returns the name that the OpenTelemetry conventions give to the span of a model
// call: its operation and model. It is empty if the attributes have neither.
func SpanName(attributes pcommon.Map) string {
	operation, model := text(attributes, names.GenAIOperationName), text(attributes, names.GenAIRequestModel)
	if operation == "" || model == "" {
		return operation + model
	}
	return operation + " " + model
}

func text(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return value.AsString()
	}
	return ""
}
