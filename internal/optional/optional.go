// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package optional holds values that may be unknown, so that a missing number is never taken for
// 0.
package optional

// Value is a value that may be unknown. Its zero value is unknown.
type Value[T any] struct {
	Value T
	Known bool
}

// Of returns a known value.
func Of[T any](v T) Value[T] { return Value[T]{v, true} }
