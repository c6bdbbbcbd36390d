package source

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// sglang reads the request spans of SGLang, not those of its threads below them.
// Its prefill holds the queue, of which it tells nothing else.
var sglang = reader{
	name:    names.SourceSGLang,
	vantage: names.VantageEngine,
	signs:   engineSigns,
	claims:  isSGLang,
	attribute: func(o *Observation, key string, v pcommon.Value) {
		readEngine(o, key, v)
		o.Request.PrefillEstimated = o.Request.Prefill.Known
	},
}

// isSGLang knows a request by its span's name, "{role} Req {id}". The role is
// empty where one process does prefill and decode.
func isSGLang(c candidate) bool {
	role, id, ok := strings.Cut(c.span.Name(), "Req ")
	return ok && id != "" && (role == "" || strings.HasSuffix(role, " ")) && !saysTensorRT(c)
}
