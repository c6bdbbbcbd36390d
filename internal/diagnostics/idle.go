// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
)

// ReportIdleExporters logs the token_sli exporters of the configuration that are in no pipeline.
// Components call it when they start: all pipelines are then built.
func ReportIdleExporters(logger *zap.Logger) {
	for _, endpoint := range inprocess.IdleExporters.Take() {
		logger.Warn("a token_sli exporter is in no pipeline, so nothing listens on its endpoint; "+
			"add it to the `exporters` of a pipeline, or remove it", zap.String("endpoint", endpoint()))
	}
}
