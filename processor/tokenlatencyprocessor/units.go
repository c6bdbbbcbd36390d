package tokenlatencyprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

func nanoseconds(seconds float64) pcommon.Timestamp {
	return pcommon.Timestamp(seconds*float64(time.Second) + 0.5)
}

func seconds(t pcommon.Timestamp) float64 { return float64(t) / 1e9 }
