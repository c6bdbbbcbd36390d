// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

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

// failure returns the end of a request whose tool recorded an error message: a traceback of Python, the reason phrase of
// an HTTP answer, or a text that has the status.
func failure(message string) *stream.End {
	errorType := exceptionOf(message)
	if isCancellation(errorType) {
		return &stream.End{Cancelled: true}
	}
	return failed(errorType, statusOf(message))
}

func isCancellation(errorType string) bool {
	return strings.HasSuffix(errorType, "CancelledError") || strings.HasSuffix(errorType, "CancellationError")
}

// exception matches the last line of a traceback, which names the exception.
var exception = regexp.MustCompile(`(?m)^([A-Za-z_][A-Za-z0-9_.]*(?:Error|Exception|Timeout|Interrupt|Exit|Disconnected))(?::|$)`)

func exceptionOf(message string) string {
	all := exception.FindAllStringSubmatch(message, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

var statusPatterns = []*regexp.Regexp{
	regexp.MustCompile(`^HTTP Error (\d{3})\b`),             // inference-perf
	regexp.MustCompile(`\berror '(\d{3}) `),                 // httpx
	regexp.MustCompile(`\bstatus(?:_code)?[ =:]+(\d{3})\b`), // aiohttp and others
}

// reasons are the statuses by the reason phrase of HTTP/1.1.
var reasons = func() map[string]int {
	all := map[string]int{}
	for status := 400; status <= 599; status++ {
		if reason := http.StatusText(status); reason != "" {
			all[reason] = status
		}
	}
	return all
}()

// statusOf returns the HTTP status that a message has, or 0.
func statusOf(message string) int {
	reason, _, _ := strings.Cut(message, ":")
	if status, ok := reasons[strings.TrimSpace(reason)]; ok {
		return status
	}
	for _, pattern := range statusPatterns {
		if found := pattern.FindStringSubmatch(message); found != nil {
			status, _ := strconv.Atoi(found[1]) // three digits
			return status
		}
	}
	return 0
}
