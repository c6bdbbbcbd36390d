// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The tables in docs/attributes.md are generated. To rewrite them:
//
//	go test ./internal/names -run TestAttributesPage_IsUpToDate -update
func TestAttributesPage_IsUpToDate(t *testing.T) {
	testenv.RequireTables(t, "docs/attributes.md", map[string]string{
		"span":                  attributeTable("", spanAttributes),
		"full":                  attributeTable("", fullAttributes),
		"carried":               attributeTable("written by", carriedAttributes),
		"slo":                   attributeTable("", sloAttributes),
		"trace":                 attributeTable("", traceAttributes),
		"standard":              attributeTable("", standardAttributes),
		"span events":           eventTable(spanEvents),
		"span event attributes": attributeTable("", spanEventAttributes),
		"slo events":            eventTable(sloEvents),
		"breach attributes":     attributeTable("", breachAttributes),
		"burn attributes":       attributeTable("", burnAttributes),
		"burn start attributes": attributeTable("", burnStartAttributes),
	})
}

// attributeTable returns a table of attributes. Without a heading, it has no column of Where: the
// page then says it once. Attributes that follow one another and differ in their keys only share a row.
func attributeTable(where string, attributes []attribute) string {
	var table strings.Builder
	if where == "" {
		table.WriteString("| key | type, unit | meaning |\n|---|---|---|\n")
	} else {
		fmt.Fprintf(&table, "| key | type, unit | %s | meaning |\n|---|---|---|---|\n", where)
	}
	for len(attributes) > 0 {
		a := attributes[0]
		var keys []string
		for len(attributes) > 0 && attributes[0].isLike(a) {
			keys = append(keys, "`"+attributes[0].Key+"`")
			attributes = attributes[1:]
		}
		fmt.Fprintf(&table, "| %s | %s |", strings.Join(keys, ", "), strings.TrimSuffix(a.Type+", "+a.Unit, ", "))
		if where != "" {
			fmt.Fprintf(&table, " %s |", a.Where)
		}
		fmt.Fprintf(&table, " %s |\n", a.Description)
	}
	return table.String()
}

// isLike reports whether attributes differ in their keys only.
func (a attribute) isLike(other attribute) bool {
	a.Key = other.Key
	return a == other
}

func eventTable(events []event) string {
	var table strings.Builder
	if events[0].Severity == "" {
		table.WriteString("| event | meaning |\n|---|---|\n")
	} else {
		table.WriteString("| event | severity | meaning |\n|---|---|---|\n")
	}
	for _, e := range events {
		if e.Severity == "" {
			fmt.Fprintf(&table, "| `%s` | %s |\n", e.Name, e.Description)
		} else {
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", e.Name, e.Severity, e.Description)
		}
	}
	return table.String()
}

var (
	spanLists  = [][]attribute{spanAttributes, fullAttributes, carriedAttributes, sloAttributes, traceAttributes, standardAttributes}
	eventLists = [][]attribute{spanEventAttributes, breachAttributes, burnAttributes, burnStartAttributes}
)

// statistic matches the part of a name that says which statistic of a distribution it is.
var statistic = regexp.MustCompile(`\.(mean|p\d+|max)$`)

// An attribute without a meaning is a number that docs/definitions.md defines.
func TestAttributes_HaveAllFieldsAndUniqueKeys(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "definitions.md"))
	require.NoError(t, err)
	definitions := string(page)
	for _, list := range slices.Concat(spanLists, eventLists) {
		keys := map[string]bool{}
		for _, a := range list {
			require.False(t, keys[a.Key], "%s is listed twice", a.Key)
			keys[a.Key] = true
			require.NotEmpty(t, a.Type, a.Key)
			if a.Description == "" {
				name := strings.TrimPrefix(a.Key, names.Prefix)
				require.Regexp(t, "`("+regexp.QuoteMeta(name)+"|"+regexp.QuoteMeta(statistic.ReplaceAllString(name, ".*"))+")`", definitions)
			}
			require.NotContains(t, a.Description, "|", a.Key)
		}
	}
}

// notAttributes lists the constants that are metrics, which docs/metrics.md lists, or
// parts of names.
var notAttributes = []string{
	names.Prefix, names.SLOPrefix, names.SLOVerdictPrefix, names.TracePrefix,
	"tokenpulse.phase.duration", names.Requests, names.RequestsUnmeasured, names.RequestsFailed, names.StreamsOpen, names.EngineState, names.EngineSilence, names.CompareVerdict, names.CapacityLoad, names.CapacityLimit, names.CapacityUtilization, "tokenpulse.tokens", "tokenpulse.stalls",
	names.SLORequests, names.SLOBurnRate,
}

func TestAttributes_EveryConstantHasARow(t *testing.T) {
	documented := map[string]bool{}
	for _, name := range notAttributes {
		documented[name] = true
	}
	for _, a := range slices.Concat(slices.Concat(spanLists, eventLists)...) {
		documented[a.Key] = true
	}
	for _, e := range slices.Concat(spanEvents, sloEvents) {
		documented[e.Name] = true
	}
	found := 0
	for name, value := range stringConstants(t) {
		if !strings.HasPrefix(value, names.Prefix) {
			continue
		}
		found++
		require.True(t, documented[value], "constant %s, %q, has no row in tables_test.go", name, value)
	}
	require.Greater(t, found, 40)
}

// stringConstants returns the values of the string constants of package names.
func stringConstants(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	constants := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range parsed.Decls {
			block, ok := declaration.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			for _, spec := range block.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, value := range spec.Values {
					if text, ok := textOf(value); ok {
						constants[spec.Names[i].Name] = text
					}
				}
			}
		}
	}
	return constants
}

// textOf returns the value of a string literal, or of Prefix and a string literal. ok
// is false for other expressions.
func textOf(expression ast.Expr) (text string, ok bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		return names.Prefix, e.Name == "Prefix"
	case *ast.BinaryExpr:
		left, leftOK := textOf(e.X)
		right, rightOK := textOf(e.Y)
		return left + right, leftOK && rightOK && e.Op == token.ADD
	}
	return "", false
}

// The golden spans of the processor have attributes of the documented types. They
// hold bytes as text, which is not compared.
func TestAttributes_MatchGoldenSpans(t *testing.T) {
	types := map[string]string{}
	for _, a := range slices.Concat(spanLists...) {
		types[a.Key] = a.Type
	}
	goldenTypes := map[string]string{"intValue": "int", "doubleValue": "double", "boolValue": "boolean", "arrayValue": "string[]", "arrayValueintValue": "int[]"}
	attribute := regexp.MustCompile(`key: (tokenpulse\.\S+)\s+value:\s+(\w+):(?:\s+values:\s+- (intValue))?`)
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "processor", "tokenlatencyprocessor", "testdata", "*", "expected.yaml"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range attribute.FindAllStringSubmatch(string(golden), -1) {
			key, goldenType := match[1], goldenTypes[match[2]+match[3]]
			require.NotEmpty(t, types[key], "%s in %s has no row in tables_test.go", key, file)
			if goldenType != "" {
				require.Equal(t, types[key], goldenType, "%s in %s", key, file)
			}
			found[key] = true
		}
	}
	require.Greater(t, len(found), 30)
}

// Generated protobuf code has package names that start like ours.
func TestNames_AreNotSpelledOutElsewhere(t *testing.T) {
	var conventions []string
	for _, value := range stringConstants(t) {
		if strings.HasPrefix(value, "gen_ai.") {
			conventions = append(conventions, value)
		}
	}
	require.NotEmpty(t, conventions)
	root, files := testenv.Root(t), 0
	for _, folder := range []string{"receiver", "processor", "exporter", "connector", "internal"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			// The reference is code of tests, whose names are what users see.
			own := slices.Contains([]string{"names", "numbers", "reference"}, filepath.Base(filepath.Dir(path)))
			if err != nil || own || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
				return err
			}
			files++
			for _, text := range stringLiterals(t, path) {
				require.False(t, strings.HasPrefix(text, names.Prefix) || slices.Contains(conventions, text),
					"%s spells out %q: use the constant of package names, or the row of package numbers", path, text)
			}
			return nil
		}))
	}
	require.Greater(t, files, 100)
}

func stringLiterals(t *testing.T, path string) (literals []string) {
	t.Helper()
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(path, -1, len(source)), source, nil, 0)
	for {
		_, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return literals
		case token.STRING:
			literal, err := strconv.Unquote(text)
			require.NoError(t, err, path)
			literals = append(literals, literal)
		}
	}
}
