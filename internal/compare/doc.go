// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package compare counts the requests of pairs of values of a dimension, such as two versions of an engine,
// for the verdict of package canary on each pair.
package compare
