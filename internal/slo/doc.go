// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package slo judges requests by service level objectives and tracks error budgets
// and burn rates over sliding windows.
package slo
