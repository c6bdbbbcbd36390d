// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"mime"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// untracked names the paths of exchanges without a span, each at most once a minute. It is safe for
// concurrent use.
type untracked struct {
	logger *zap.Logger
	now    func() time.Time

	// mu guards the following.
	mu    sync.Mutex
	since time.Time       // the begin of the minute
	named map[string]bool // the paths of the minute
}

// maxNamed is the number of paths that are named in a minute.
const maxNamed = 100

func newUntracked(logger *zap.Logger, now func() time.Time) *untracked {
	return &untracked{logger: logger, now: now, named: map[string]bool{}}
}

func (u *untracked) name(path, upstream, contentType string, status int) {
	path = pathPattern(path)
	if !u.isNew(path) {
		return
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil || !plainMediaType.MatchString(mediaType) {
		mediaType = names.Other
	}
	u.logger.Info("forwarded an answer in no known format without a span; if it is an LLM's, report the format",
		zap.String("path", path), zap.String("upstream", upstream), zap.String("content_type", mediaType), zap.Int("status", status))
}

func (u *untracked) isNew(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.now(); now.Sub(u.since) >= time.Minute {
		u.since = now
		clear(u.named)
	}
	if u.named[path] || len(u.named) == maxNamed {
		return false
	}
	u.named[path] = true
	return true
}

// Bounds of a path pattern.
const (
	maxSegments = 16
	maxSegment  = 24 // bytes; IDs have 32 or more
)

var (
	plainSegment   = regexp.MustCompile(`^[A-Za-z0-9_.:@~+-]*$`)
	plainMediaType = regexp.MustCompile(`^[a-z0-9./+-]{1,64}$`)
	digits         = regexp.MustCompile(`[0-9]+`)
)

// pathPattern returns a path without what may identify a user or hold text: digits become 0, and
// segments that are long or escaped become *.
func pathPattern(path string) string {
	segments := strings.Split(path, "/")
	if len(segments) > maxSegments {
		segments = append(segments[:maxSegments], "...")
	}
	for i, segment := range segments {
		if len(segment) > maxSegment || !plainSegment.MatchString(segment) {
			segments[i] = "*"
		} else {
			segments[i] = digits.ReplaceAllString(segment, "0")
		}
	}
	return strings.Join(segments, "/")
}
