// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// budgetKey is the key of the series of a budget. It is binary: the index has it in base64, and
// an entry by its hash, because some storages accept only text as a key.
type budgetKey string

// MarshalText implements encoding.TextMarshaler.
func (k budgetKey) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(k)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *budgetKey) UnmarshalText(text []byte) error {
	key, err := base64.StdEncoding.AppendDecode(nil, text)
	*k = budgetKey(key)
	return err
}

func (k budgetKey) entry() string {
	return storageclient.Entry("series", []byte(k))
}

type budgetStore = storageclient.Snapshots[budgetKey, slo.Version]

// savedBudgets returns the error budgets of a tracker for a budgetStore.
func savedBudgets(tracker *slo.Tracker, dimensions series.Dimensions) storageclient.Values[budgetKey, slo.Version] {
	now := time.Now()
	return storageclient.Values[budgetKey, slo.Version]{
		Name: "budgets", Keys: "keys", Entry: budgetKey.entry, Dimensions: dimensions.Identities(),
		Unreadable: "cannot restore some error budgets, which start empty",
		Saved: func(visit func(budgetKey, slo.Version, func() []byte)) {
			tracker.Saved(func(key string, version slo.Version, encode func() []byte) { visit(budgetKey(key), version, encode) })
		},
		Restore: func(key budgetKey, encoded []byte) error {
			if !series.IsKey(string(key), len(dimensions)) {
				return fmt.Errorf("malformed series key: %q", string(key))
			}
			return tracker.Restore(string(key), encoded, now)
		},
	}
}
