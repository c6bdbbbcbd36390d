// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// StartError adds to the error of a server or client that does not start which settings it is about,
// those of a section or, if it is empty, at the top level, and the remedy. It returns nil for nil.
func StartError(section string, err error) error {
	var network *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("`%s`: %w; stop what listens there, or choose another port", join(section, "endpoint"), err)
	case errors.As(err, &network):
		return fmt.Errorf("`%s`: %w", join(section, "endpoint"), err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("`%s`: %w; enter the path of a file that the Collector may read", join(section, "tls"), err)
	case section == "":
		return err
	default:
		return fmt.Errorf("`%s`: %w", section, err)
	}
}
