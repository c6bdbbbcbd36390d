// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ranking

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Condition selects the requests with a value of an attribute, as `match` of an SLO does.
type Condition struct {
	attribute, value string
	known            bool // a request has the attribute
}

// ParseCondition parses attribute=value. Outcome and vantage need no prefix.
func ParseCondition(text string) (Condition, error) {
	attribute, value, ok := strings.Cut(text, "=")
	if !ok || attribute == "" {
		return Condition{}, fmt.Errorf("%q is no condition; give attribute=value, such as %s=llama-3.1-8b", text, names.GenAIRequestModel)
	}
	switch names.Prefix + attribute {
	case names.Outcome, names.Vantage:
		attribute = names.Prefix + attribute
	}
	return Condition{attribute: attribute, value: value, known: names.IsBoolean(attribute)}, nil
}

// holds reports whether a request meets the condition: with an attribute of its span, or else of its resource.
func (c *Condition) holds(span, resource pcommon.Map) bool {
	v, ok := attributes.LookUp(c.attribute, span, resource)
	if !ok {
		return names.IsBoolean(c.attribute) && c.value == "false" // which is not written
	}
	c.known = true
	return v.AsString() == c.value
}
