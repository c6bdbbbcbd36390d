// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
)

// Widths of the columns, with the space between them.
const (
	minColumns      = 40
	vantageColumns  = 8
	durationColumns = 10
	// withVantage is the least width of a picture with vantages.
	withVantage = 60
)

// picture is a trace with the widths of its columns.
type picture struct {
	*Trace
	out            *strings.Builder
	label, vantage int
	axis           axis
	used           map[rune]bool
}

// Draw writes the trace as text that is at most so many columns wide, but at least 40.
func (t *Trace) Draw(out io.Writer, columns int) error {
	columns = max(columns, minColumns)
	p := &picture{Trace: t, out: &strings.Builder{}, used: map[rune]bool{}}
	t.visit(func(s *span, prefix string) { p.label = max(p.label, terminal.Cells(prefix+s.label())) })
	p.label = min(p.label, columns*3/8)
	if columns >= withVantage {
		p.vantage = vantageColumns
	}
	p.axis = t.axis(columns - p.label - 1 - p.vantage - durationColumns)

	p.line("%s", terminal.Wrap(t.summary(p.axis), columns, "  "))
	p.line("")
	p.row("", "", p.axis.ticks(), "")
	t.visit(p.span)
	p.line("")
	p.line("%s", terminal.Wrap(p.legend(), columns, "  "))
	for _, note := range t.notes() {
		p.line("%s", terminal.Wrap("note: "+note, columns, "  "))
	}
	t.visit(func(s *span, _ string) {
		if r := t.requests[s.key]; r != nil {
			p.line("")
			for _, line := range details(s, r) {
				p.line("%s", terminal.Wrap(line, columns, "    "))
			}
		}
	})
	_, err := io.WriteString(out, p.out.String())
	return err
}

func (p *picture) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// row writes a line of the picture.
func (p *picture) row(label, vantage, bar, duration string) {
	if p.vantage > 0 {
		vantage = terminal.Fit(vantage, p.vantage-1) + " "
	} else {
		vantage = ""
	}
	bar = terminal.Fit(bar, p.axis.columns)
	p.line("%s", strings.TrimRight(terminal.Fit(label, p.label)+" "+vantage+bar+" "+duration, " "))
}

// span writes the lines of a span.
func (p *picture) span(s *span, prefix string) {
	r := p.requests[s.key]
	if !s.timed {
		p.row(prefix+s.label(), vantageOf(s, r), "", "no time")
		return
	}
	bar := barOf(s, r, &p.axis)
	for _, mark := range bar.marks {
		p.used[mark] = true
	}
	length := terminal.Duration((s.end - s.begin).Seconds())
	if s.failed || r != nil && failed(r) {
		length, p.used['!'] = length+" !", true
	}
	p.row(prefix+s.label(), vantageOf(s, r), string(bar.marks), length)
	if r != nil && r.Chunks != nil && len(r.Chunks.At) > 0 {
		p.used[levels[0]] = true
		p.row(below(s, prefix), "", string(tokensOf(s, r, &p.axis).marks), request.Count(r.OutputTokens)+" tok")
	}
}

func (s *span) label() string { return terminal.Name(s.name) }

func vantageOf(s *span, r *request.Request) string {
	if r != nil {
		return terminal.Printable(r.Vantage)
	}
	return s.kind
}

// legend explains the marks that the picture has.
func (p *picture) legend() string {
	var parts []string
	for _, entry := range legend {
		if p.used[entry.mark] {
			parts = append(parts, together(fmt.Sprintf("%c %s", entry.mark, entry.text)))
		}
	}
	if p.used[levels[0]] {
		parts = append(parts, together(string(levels)+" tokens per column"))
	}
	if p.used['!'] {
		parts = append(parts, together("! failed"))
	}
	return strings.Join(parts, ", ")
}

func (t *Trace) summary(a axis) string {
	text := fmt.Sprintf("Trace %s: %s, %s", t.id, terminal.Plural(len(t.spans), "span"), terminal.Plural(len(t.requests), "request"))
	if a.length > 0 {
		text += fmt.Sprintf(", from %s UTC, %s", time.Unix(0, int64(a.begin)).UTC().Format("2006-01-02 15:04:05.000"), terminal.Duration(a.length.Seconds()))
	}
	return text
}
