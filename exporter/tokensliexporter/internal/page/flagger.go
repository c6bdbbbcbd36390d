// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/canary"
)

// flaggerHooks holds, for each type of Flagger's webhooks that asks a question, the verdicts to answer yes to: may the
// canary go on, may it be promoted, must it be rolled back.
var flaggerHooks = map[string][]canary.Verdict{
	"rollout":           {canary.Pass, canary.Undecided},
	"confirm-promotion": {canary.Pass},
	"rollback":          {canary.Fail},
}

// maxFlaggerBody limits the body of a webhook.
const maxFlaggerBody = 64 << 10

// flagger answers a webhook of Flagger with the comparison that its metadata asks for. To Flagger, a status of success is a
// yes, and any other one a no.
func (p *Page) flagger(w http.ResponseWriter, r *http.Request) {
	var hook struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFlaggerBody)).Decode(&hook); err != nil {
		fail(w, invalid("send JSON as Flagger does, with strings in `metadata`, and at most 64 KiB", "the body cannot be read"))
		return
	}
	yes, known := flaggerHooks[hook.Metadata["hook"]]
	if !known {
		fail(w, invalid(remedyOf("valid values", slices.Sorted(maps.Keys(flaggerHooks))), "`hook` in `metadata` is %q", hook.Metadata["hook"]))
		return
	}
	delete(hook.Metadata, "hook")
	values := url.Values{}
	for name, value := range hook.Metadata {
		values.Set(name, value)
	}
	release, err := p.admit(r)
	if err != nil {
		fail(w, err)
		return
	}
	defer release()
	err = checkNames(compareParams, values)
	var c *comparison
	if err == nil {
		c, err = p.comparison(values, p.Now())
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !slices.Contains(yes, c.Verdict) {
		w.WriteHeader(http.StatusConflict)
	}
	_ = json.NewEncoder(w).Encode(c) // an error means that the client went away
}
