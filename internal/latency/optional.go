// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

// Optional is a value that may be unknown.
type Optional[T any] struct {
	Value T
	Known bool
}

// Known returns a known value.
func Known[T any](v T) Optional[T] { return Optional[T]{v, true} }
