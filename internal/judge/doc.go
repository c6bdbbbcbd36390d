// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package judge judges requests and traces by service level objectives: their configuration, the
// conditions under which they apply, and the verdicts on spans. Package slo defines the verdicts and
// counts them.
package judge
