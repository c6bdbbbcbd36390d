// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestScanString_EveryByte(t *testing.T) {
	for b := range 256 {
		text := []byte(`{"a":"x` + string([]byte{byte(b)}) + `"}`)
		o := openObject(text)
		require.Equal(t, utf8.Valid(text) && json.Valid(text), o.next() && !o.next() && o.end(), "%q", text)
	}
}

// FuzzNestedObject holds the scan of nested objects to the rules of package jsontext, whether
// they are flat or not.
func FuzzNestedObject(f *testing.F) {
	members := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"name-%d":%d`, i, i))
		}
		return strings.Join(all, ",")
	}
	for _, seed := range []string{
		``, ` `, `"a":1`, ` "a" : "b" , "c":null `, `"a":1,`, `,"a":1`, `"a":1 "b":2`, `"a"`, `"a":`, `a:1`, `"a":1}`, `"a":1},{`,
		`"a":1,"a":2`, `"a":1,"\u0061":2`, `"\u0061":1,"a":2`, `"a":"\ud800"`, `"a":"\ud83d\ude00"`, `"\ud800":1`, "\"a\":\"\xff\"", "\"\xff\":1", "\"a\":\"\x01\"",
		`"a":01`, `"a":-`, `"a":1.`, `"a":1e`, `"a":1e+5`, `"a":tru`, `"a":{}`, `"a":{"b":1,"b":2}`, `"a":[1,]`, `"a":"{"`, `"":1,"":2`,
		members(maxFlatMembers), members(maxFlatMembers + 1), members(maxFlatMembers) + `,"name-0":1`, members(maxFlatMembers-1) + `,"name-0":1`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		nested := `{` + text + `}`
		o := openObject([]byte(`{"nested":` + nested + `}`))
		scanned := o.next() && string(o.value.raw) == nested && !o.next() && o.end()
		require.Equal(t, utf8.ValidString(nested) && jsontext.Value(nested).IsValid(syntaxOnly...), scanned)
		if scanned {
			require.Equal(t, jsontext.Value(nested).IsValid(), o.value.isStrict())
		}
	})
}
