// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package annotate writes the numbers of one request as attributes of its span. The
// token_latency processor applies it to spans, the token_stream receiver to finished streams: both give
// the same attributes.
package annotate
