// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

// Observers are the vantages that see requests, outermost first.
var Observers = [...]Vantage{VantageClient, VantageGateway, VantageServer, VantageEngine}

// Requests counts requests by the vantage that saw them. VantageUnspecified stands for an unknown one.
type Requests [VantageEngine + 1]uint64

// Shown returns the vantage whose requests stand for all, since several vantages may see one request: the outermost one with
// at least half as many requests as the one that has most. It is VantageUnspecified if no request has a known vantage.
func (r *Requests) Shown() Vantage {
	var most uint64
	for _, v := range Observers {
		most = max(most, r[v])
	}
	for _, v := range Observers {
		if r[v] > 0 && 2*r[v] >= most {
			return v
		}
	}
	return VantageUnspecified
}
