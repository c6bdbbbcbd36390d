// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// endpoints returns where each upstream takes chat completions, the API that most services have.
func (r *tokenTapReceiver) endpoints() (all []inprocess.Endpoint) {
	base := httpguard.URLOf(&r.cfg.Server, r.address)
	if base == "" {
		return nil
	}
	add := func(prefix, upstream string) {
		path := "/v1/chat/completions"
		if strings.HasSuffix(strings.TrimSuffix(upstream, "/"), "/v1") {
			path = "/chat/completions"
		}
		all = append(all, inprocess.Endpoint{Receiver: metadata.Type.String(), URL: base + prefix + path, Auth: r.cfg.Server.Auth.HasValue()})
	}
	if r.cfg.Upstream.Endpoint != "" {
		add("", r.cfg.Upstream.Endpoint)
	}
	for i := range r.cfg.Routes {
		add(r.cfg.Routes[i].Prefix, r.cfg.Routes[i].Upstream.Endpoint)
	}
	return all
}
