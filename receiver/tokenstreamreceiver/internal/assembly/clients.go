// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"sync"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// clients counts the open streams of each client, reservations included. It holds only
// clients with open streams.
type clients struct {
	mu sync.Mutex
	// mu guards everything declared below, and the fields of each usage.
	usages map[httpguard.Client]*clientUsage
}

type clientUsage struct {
	client  httpguard.Client
	streams int
}

// add counts new streams of a client.
func (c *clients) add(client httpguard.Client, streams int) *clientUsage {
	c.mu.Lock()
	defer c.mu.Unlock()
	usage := c.usages[client]
	if usage == nil {
		usage = &clientUsage{client: client}
		c.usages[client] = usage
	}
	usage.streams += streams
	return usage
}

// remove counts streams that are no longer open.
func (c *clients) remove(usage *clientUsage, streams int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if usage.streams -= streams; usage.streams == 0 {
		delete(c.usages, usage.client)
	}
}

func (c *clients) streams(usage *clientUsage) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return usage.streams
}
