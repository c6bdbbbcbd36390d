// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package annotate turns the derived latency of one request into the attributes of its span, and
// judges service level objectives. The token_latency processor applies it to spans, the token_stream
// receiver to finished streams: both give the same attributes and verdicts.
package annotate
