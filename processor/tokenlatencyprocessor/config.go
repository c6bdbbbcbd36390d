// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import "github.com/tokenpulse/tokenpulse/internal/annotate"

// Config is the configuration of the token_latency processor.
type (
	Config         = annotate.Config
	SLOConfig      = annotate.SLOConfig
	FluidityConfig = annotate.FluidityConfig
)
