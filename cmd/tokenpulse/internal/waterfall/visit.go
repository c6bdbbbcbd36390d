// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import "strings"

// maxDepth limits the levels of the tree that the lines before a name show. Names of deeper spans stand below each other.
const maxDepth = 8

// Lines of the tree.
const (
	hasNext = "├ "
	isLast  = "└ "
	passes  = "│ "
	empty   = "  "
)

// visit calls show with each span from the roots down, and the lines of the tree before its name.
func (t *Trace) visit(show func(s *span, prefix string)) {
	for _, root := range t.roots {
		show(root, "")
		visitChildren(root, "", 1, show)
	}
}

// visitChildren continues the lines that lead past the children.
func visitChildren(s *span, lines string, depth int, show func(*span, string)) {
	for i, child := range s.children {
		own, further := hasNext, passes
		if i == len(s.children)-1 {
			own, further = isLast, empty
		}
		if depth > maxDepth {
			show(child, lines)
			visitChildren(child, lines, depth, show)
			continue
		}
		show(child, lines+own)
		visitChildren(child, lines+further, depth+1, show)
	}
}

// below returns the lines of the tree in the line below a span.
func below(s *span, prefix string) string {
	prefix = strings.NewReplacer(hasNext, passes, isLast, empty).Replace(prefix)
	if len(s.children) > 0 {
		prefix += passes
	}
	return prefix
}
