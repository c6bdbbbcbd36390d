// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// A message in a call of a logger starts in lower case, and has no full stop: neither at its end nor before a remedy.
// Only literal messages are checked, not constants or the values of maps.
func TestLiteralMessages_AreLowerCaseWithoutFullStop(t *testing.T) {
	levels := []string{"Debug", "Info", "Warn", "Error"}
	loggers := regexp.MustCompile(`(?i)logger$`)
	sentence := regexp.MustCompile(`^[A-Z]|\.( |$)`)
	root, found := testenv.Root(t), 0
	for _, folder := range []string{"receiver", "processor", "exporter", "connector", "internal"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(file, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains(levels, method.Sel.Name) || !loggers.MatchString(lastName(method.X)) {
					return true
				}
				if message := literals(call.Args[0]); message != "" {
					found++
					require.NotRegexp(t, sentence, message, path)
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, found, 15)
}

// lastName returns the last part of a name such as r.settings.Logger.
func lastName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literals joins the string literals of a message, in their order.
func literals(expression ast.Expr) (joined string) {
	ast.Inspect(expression, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			joined += text
		}
		return true
	})
	return joined
}
