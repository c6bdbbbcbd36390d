// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// Duration formats a duration with three significant digits, in the fitting unit. NaN is
// unknown.
func Duration(s float64) string {
	switch {
	case math.IsNaN(s):
		return "-"
	case s < 999.5e-6:
		return digits(s*1e6) + "µs"
	case s < 999.5e-3:
		return digits(s*1e3) + "ms"
	default:
		return digits(s) + "s"
	}
}

func digits(v float64) string {
	if v >= 99.95 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Name formats the value of a label.
func Name(label string) string {
	if label == "" {
		return "-"
	}
	return Printable(label)
}

// Cut cuts the middle out of a text that is longer than width runes, so that names which begin alike stay different.
func Cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	head := width / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-head-1):])
}

// Width returns the number of columns of a terminal, or 0 if the output is no terminal.
func Width(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd())) //nolint:gosec // a descriptor fits
	if err != nil {
		return 0
	}
	return width
}

// Percent formats a share, and never rounds one below 1 up to 100%.
func Percent(share float64) string {
	return strconv.FormatFloat(math.Floor(share*1e4+1e-6)/100, 'f', 2, 64) + "%"
}

// Plural formats a number of something.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Table writes rows in columns.
func Table(out io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(out, 0, 0, Gap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// Gap is the space between columns of a Table.
const Gap = 2
