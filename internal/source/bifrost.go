// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// bifrost reads the spans of Bifrost. They follow the OpenTelemetry conventions, but for the unit of the time to the first
// token, see firstTokenUnits, and are of a gateway, though their kind is SERVER.
var bifrost = reader{
	name:    names.SourceBifrost,
	vantage: timeline.VantageGateway,
	signs:   []*sign{modelCall},
	claims:  func(c candidate) bool { return c.scope == "bifrost-otel-plugin" },
}
