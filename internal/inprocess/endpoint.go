// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inprocess

// Endpoint is where a receiver takes requests.
type Endpoint struct {
	// Receiver is the type of the receiver.
	Receiver string `json:"receiver"`
	// URL is where a first request goes: token events of token_stream, chat completions through a route of token_tap. The host is
	// 0.0.0.0 or [::] if the receiver listens on all addresses.
	URL string `json:"url"`
	// Auth is set if the receiver asks for credentials.
	Auth bool `json:"auth"`
}
