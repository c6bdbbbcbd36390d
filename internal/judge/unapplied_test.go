// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// modelRules returns an SLO for each model. That of the model "" applies to all requests.
func modelRules(t *testing.T, models ...string) (*Unapplied, *observer.ObservedLogs) {
	t.Helper()
	var slos []SLOConfig
	for _, model := range models {
		slo := SLOConfig{Name: "slo of " + model, Indicator: "time_to_first_token", Threshold: "1s"}
		if model != "" {
			slo.Match = map[string]string{names.GenAIRequestModel: model}
		}
		slos = append(slos, slo)
	}
	rules, err := NewRules(slos, false)
	require.NoError(t, err)
	core, logs := observer.New(zapcore.DebugLevel)
	return NewUnapplied(diagnostics.NewDoubts(zap.New(core), time.Now), rules), logs
}

// judgeEach judges one request of each model, and then calls Inspect as after a batch.
func (u *Unapplied) judgeEach(models ...string) {
	for _, model := range models {
		span := ptrace.NewSpan()
		span.Attributes().PutStr(names.Source, names.SourceTokenStream)
		span.Attributes().PutStr(names.GenAIRequestModel, model)
		NewSpanJudge(u.rules).Judge(span, pcommon.NewMap())
	}
	u.Inspect()
}

func TestUnapplied_WarnsOnceOfSLOThatNeverApplies(t *testing.T) {
	u, logs := modelRules(t, "", "misspelt")
	for range 100 {
		u.judgeEach("m")
	}
	require.Zero(t, logs.Len(), "before 15 minutes")
	u.since = time.Now().Add(-15 * time.Minute)
	u.judgeEach("m")
	u.judgeEach("m")
	require.Equal(t, 1, logs.Len())
	require.Contains(t, logs.All()[0].Message, "compare their `match`")
	require.Equal(t, []any{"slo of misspelt"}, logs.All()[0].ContextMap()["slos"])
}

func TestUnapplied_IsSilentAboutSLOThatAppliedOnce(t *testing.T) {
	u, logs := modelRules(t, "m")
	u.since = time.Now().Add(-15 * time.Minute)
	for range 99 { // fewer than 100
		u.judgeEach("other")
	}
	u.judgeEach("m")
	for range 200 {
		u.judgeEach("other")
	}
	require.Zero(t, logs.Len())
}
