// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
)

type (
	// Config is the configuration of the token_latency processor.
	Config = annotate.Config
	// SLOConfig is the configuration of one SLO.
	SLOConfig = judge.SLOConfig
	// FluidityConfig holds the deadlines of the fluidity index.
	FluidityConfig = annotate.FluidityConfig
)
