// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// sglang reads the request spans of SGLang, not the spans of its threads below them. Its prefill
// includes the queue, which it does not report separately.
var sglang = reader{
	name:    names.SourceSGLang,
	vantage: timeline.VantageEngine,
	signs:   engineSigns,
	claims:  isSGLang,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		readEngine(o, key, v)
		o.Request.PrefillEstimated = o.Request.Prefill.Known
	},
}

// isSGLang recognises a request by its span's name, "{role} Req {id}". The role is empty if one
// process does both prefill and decode.
func isSGLang(c candidate) bool {
	role, id, ok := strings.Cut(c.span.Name(), "Req ")
	return ok && id != "" && (role == "" || strings.HasSuffix(role, " ")) && !isTensorRT(c)
}
