// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"strconv"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// failed returns the end of a failed request, with the name of its error and the HTTP status, as far as they are known.
// Free text is replaced.
func failed(errorType string, status int) *stream.End {
	end := &stream.End{Attributes: stream.Attributes{}}
	if 400 <= status && status <= 599 {
		end.Attributes[names.HTTPResponseStatusCode] = int64(status)
		if errorType == "" {
			errorType = strconv.Itoa(status)
		}
	}
	if errorType == "" {
		errorType = names.Other
	}
	end.Error = names.Category(errorType)
	end.Attributes[names.ErrorType] = end.Error
	return end
}
