// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

// ReportIdleExporters logs the endpoints of the token_sli exporters of the configuration that are in no
// pipeline. Components call it when they start: all pipelines are then built.
func ReportIdleExporters(logger *zap.Logger) {
	if endpoints := IdleExporters.Take(); len(endpoints) > 0 {
		diagnostics.ExporterIdle.Log(logger, zap.Strings("endpoints", endpoints))
	}
}
