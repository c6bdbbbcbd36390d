// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"errors"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

// savers save and close several things. It is a keeper.Saver.
type savers []keeper.Saver

// Save implements keeper.Saver.
func (all savers) Save(ctx context.Context) (err error) {
	for _, s := range all {
		err = errors.Join(err, s.Save(ctx))
	}
	return err
}

// Close implements keeper.Saver.
func (all savers) Close(ctx context.Context) (err error) {
	for _, s := range all {
		err = errors.Join(err, s.Close(ctx))
	}
	return err
}
