// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package slo judges requests by service level objectives and tracks error budgets
// and burn rates over sliding windows.
//
// A budget covers up to 90 days, and a series expires after an hour without a request. So a
// Tracker holds windows by an opaque key, apart from the series: a model without traffic
// overnight would otherwise start each day with a full budget. One budget over all series
// would hide the model that burns it.
package slo
