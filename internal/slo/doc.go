// Package slo judges requests by service level objectives and tracks error budgets
// and burn rates over sliding windows.
package slo
