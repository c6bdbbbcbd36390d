// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// elidedTo returns what remains of a text at a limit, if it fits.
func elidedTo(limit int, text string) (string, bool) {
	b := Limits{EventBytes: limit}.jsonBuffer()
	ok := b.add([]byte(text))
	return string(b.bytes), ok
}

// At a limit of 64 bytes, a string keeps 16 bytes, and an array the elements that begin in its first 17 bytes.
func TestElision_LeavesOutWhatIsLong(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct{ text, want string }{
		"an event within the limit":                {`{"a":"` + x(50) + `"}`, `{"a":"` + x(50) + `"}`},
		"the rest of a string":                     {`{"a":"` + x(90) + `","b":1}`, `{"a":"` + x(16) + `","b":1}`},
		"a string that ends with a quote":          {`{"a":"` + x(90) + `\"","b":1}`, `{"a":"` + x(16) + `","b":1}`},
		"a string of escape sequences":             {`{"a":"` + strings.Repeat(`\u00e9`, 20) + `\\","b":1}`, `{"a":"` + strings.Repeat(`\u00e9`, 3) + `","b":1}`},
		"a string of quotes":                       {`{"a":"` + strings.Repeat(`\"`, 40) + `"}`, `{"a":"` + strings.Repeat(`\"`, 8) + `"}`},
		"later elements of an array":               {`{"a":[` + strings.Repeat("123, ", 30) + `4],"b":[1]}`, `{"a":[123, 123, 123, 123],"b":[1]}`},
		"elements with brackets and commas inside": {`{"a":[` + strings.Repeat(`{"c":["],[",{}]},`, 9) + `4],"b":1}`, `{"a":[{"c":["],[",{}]}],"b":1}`},
		"an array whose only element is long":      {`{"a":[{"b":"` + x(90) + `","c":1}],"d":2}`, `{"a":[{"b":"` + x(16) + `","c":1}],"d":2}`},
		"a string in an element that is left out":  {`[` + strings.Repeat("1,", 12) + `"` + x(90) + `",2]`, `[1,1,1,1,1,1,1,1,1]`},
		"what is before and after is no JSON":      {`data: [` + strings.Repeat("1,", 60) + `2]  `, `data: [1,1,1,1,1,1,1,1,1]  `},
		"an array within others":                   {strings.Repeat("[", 20) + strings.Repeat("1,", 60) + strings.Repeat("]", 20), strings.Repeat("[", 20) + "1,1,1,1,1,1,1,1,1" + strings.Repeat("]", 20)},
	} {
		got, ok := elidedTo(64, c.text)
		assert.True(t, ok, name)
		assert.Equal(t, c.want, got, name)
	}
	for name, text := range map[string]string{
		"members of an object": `{` + strings.Repeat(`"a":1,`, 20) + `"b":1}`,
		"a number":             strings.Repeat("1", 65),
		"elements too deep":    strings.Repeat("[", maxNested+1) + strings.Repeat("1,", 60) + strings.Repeat("]", maxNested+1),
	} {
		_, ok := elidedTo(64, text)
		assert.False(t, ok, name)
	}
}

// A long event of each kind between two short ones, in each framing that elides.
func TestDecoderMemory_StaysSmallAroundLongStringsAndArrays(t *testing.T) {
	const limit, long = 1 << 20, 64 << 20
	const before, after = `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"}`, `,"finish_reason":"stop"}],"usage":{"completion_tokens":7}}`
	for name, c := range map[string]struct{ open, filler, closing string }{
		"a string":           {`,"image":"`, "AAAAAAA=", `"`},
		"numbers":            {`,"prompt_token_ids":[1`, ",1234567", `]`},
		"objects":            {`,"prompt_logprobs":[null`, `,{"1":0}`, `]`},
		"strings in objects": {`,"images":[{"url":"`, "AAAAAAA=", `"},{"url":"AAAA"}]`},
	} {
		for framing, f := range map[string]struct{ contentType, begin, between, end string }{
			"SSE":        {"text/event-stream", "data: ", "\n\ndata: ", "\n\n"},
			"JSON lines": {"application/x-ndjson", "", "\n", "\n"},
			"JSON array": {"application/json", "[", ",", "]"},
			"objects":    {"application/json", "", "\n", ""},
		} {
			t.Run(name+" in "+framing, func(t *testing.T) {
				var chunks []Chunk
				memory := NewMemory(2 * limit)
				account := memory.Account()
				var start, end runtime.MemStats
				runtime.ReadMemStats(&start)
				d := NewDecoder(AnswerHead{Path: "/v1/chat/completions", Status: 200, ContentType: f.contentType}, Limits{EventBytes: limit, Memory: &account}, func(c Chunk) { chunks = append(chunks, c) })
				d.Write([]byte(f.begin+chatEvent("a")+f.between+before+c.open), 1)
				piece := bytes.Repeat([]byte(c.filler), 4<<10)
				for range long / len(piece) {
					d.Write(piece, 2)
				}
				d.Write([]byte(c.closing+after+f.between+chatEvent("c")+f.end), 3)
				d.End(4)
				runtime.ReadMemStats(&end)
				assert.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(4*limit))
				assert.Zero(t, account.Refusals())
				var indexes []int64
				for _, c := range chunks {
					indexes = append(indexes, c.Index)
				}
				o := d.Observation()
				assert.Equal(t, []int64{0, 1, 2}, indexes)
				assert.Equal(t, []string{"stop"}, o.FinishReasons)
				assert.Equal(t, optional.Of[int64](7), o.Reported.Output)
				assert.Equal(t, Unparsed{}, o.Unparsed)
				assert.Equal(t, int64(3), o.Events)
			})
		}
	}
}

// What remains must not depend on where the event is cut, and a long text is still a text.
func TestDecoder_ElidesTheSameForEveryCut(t *testing.T) {
	x := AnswerHead{Path: "/v1/completions"}
	limits := Limits{EventBytes: 200}
	body := []byte(sse(
		`{"object":"text_completion","choices":[{"index":0,"text":"a","prompt_token_ids":[`+strings.Repeat("12345,", 40)+`6],"token_ids":[1,2]}]}`,
		`{"object":"text_completion","choices":[{"index":0,"text":"`+strings.Repeat(`b\n\u00e9`, 40)+`","token_ids":[3]}]}`,
		`{"object":"text_completion","choices":[{"index":0,"text":"","p":"`+strings.Repeat("b", 300)+`"}]}`,
		`{"object":"text_completion","choices":[{"index":0,"text":"c","token_ids":[4],"finish_reason":"stop"}],`+strings.Repeat(`"a":1,`, 40)+`"usage":{}}`,
		`{"object":"text_completion","choices":[{"index":0,"text":"d","token_ids":[5]}]}`,
	))
	whole := decode(x, limits, body)
	require.Len(t, whole.Chunks, 3)
	for i, want := range []string{"0c2 false", "1c1 false", "4c1 true"} {
		assert.Equal(t, want, fmt.Sprint(describe(whole.Chunks[i]), " ", whole.Chunks[i].AfterGap))
	}
	assert.Equal(t, Unparsed{TooLong: 1}, whole.Unparsed, "an object of many members")
	for at := range body {
		require.Equal(t, whole, decode(x, limits, body, at), "cut at %d", at)
	}
}

// randomJSON returns a value with long strings and arrays now and then.
func randomJSON(random *rand.Rand, depth int) string {
	switch kind := random.IntN(7); {
	case kind == 0 && depth > 0:
		var members []string
		for range random.IntN(4) {
			members = append(members, `"`+otherTexts[random.IntN(8)]+`": `+randomJSON(random, depth-1))
		}
		return "{" + strings.Join(members, ",") + "}"
	case kind <= 2 && depth > 0:
		elements := slices.Repeat([]string{randomJSON(random, depth-1)}, random.IntN(4)*random.IntN(4))
		return "[" + strings.Join(elements, " ,") + "]"
	case kind <= 4:
		var text strings.Builder
		for range random.IntN(30) * random.IntN(3) {
			text.WriteString([]string{"a", "é", "\\n", "\\u00e9", "\\\"", "\\\\", "]", ",", "{"}[random.IntN(9)])
		}
		return `"` + text.String() + `"`
	default:
		return []string{"null", "true", "-1.5e3", "12345"}[random.IntN(4)]
	}
}

func TestElision_KeepsAPartOfRandomJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(36, 3))
	elided := 0
	for range 20_000 {
		text := "[" + randomJSON(random, 5) + "," + randomJSON(random, 5) + "]"
		v, ok := parse([]byte(text))
		require.True(t, ok, text)
		got, fits := elidedTo(256, text)
		if !fits {
			continue
		}
		left, ok := parse([]byte(got))
		require.True(t, ok, "%s became %s", text, got)
		requirePart(t, left, v)
		if len(text) <= 256 {
			require.Equal(t, text, got)
		} else {
			elided++
		}
	}
	require.Greater(t, elided, 500)
}

// FuzzElision compares what remains of a text at a low limit with the text: it is JSON if the text is, its members have the same
// kinds, and pieces do not matter.
func FuzzElision(f *testing.F) {
	f.Add([]byte(`{"a":"`+strings.Repeat(`\u00e9\"`, 40)+`","b":[1,[2,{"c":[`+strings.Repeat(`"]",`, 40)+`1]}]],"d":{"e":"\\"}}`), []byte{0, 3})
	f.Add([]byte(`[[[`+strings.Repeat(`{"a":1},`, 90)+`1]],"x"]`), []byte{7})
	f.Add([]byte(strings.Repeat(`{"a":[`, 40)+`"`+strings.Repeat("x", 300)+`"`+strings.Repeat(`]}`, 40)), []byte{1})
	f.Fuzz(func(t *testing.T, text, sizes []byte) {
		const limit = 128
		whole, cut := Limits{EventBytes: limit}.jsonBuffer(), Limits{EventBytes: limit}.jsonBuffer()
		fits, pieceFits := whole.add(bytes.Clone(text)), true
		pieces(text, sizes, func(p []byte) { pieceFits = pieceFits && cut.add(p) })
		require.Equal(t, fits, pieceFits)
		if !fits {
			return
		}
		require.LessOrEqual(t, cap(whole.bytes), limit)
		require.Equal(t, string(whole.bytes), string(cut.bytes))
		if len(text) <= limit {
			require.Equal(t, string(text), string(whole.bytes))
		}
		if v, ok := parse(text); ok {
			left, ok := parse(whole.bytes)
			require.True(t, ok, "%s became %s", text, whole.bytes)
			requirePart(t, left, v)
		}
	})
}

// requirePart requires that what remains of a value has the same members, the first elements of an array, and the beginning of
// a string.
func requirePart(t *testing.T, left, v value) {
	t.Helper()
	switch {
	case v.isObject():
		var names []string
		var members []value
		for name, m := range v.members {
			names, members = append(names, string(name)), append(members, m)
		}
		i := 0
		for _, m := range left.members {
			require.Less(t, i, len(names))
			requirePart(t, m, members[i])
			i++
		}
		require.Len(t, names, i)
	case len(v) > 0 && v[0] == '[':
		require.Equal(t, byte('['), left[0])
		var elements []value
		for element := range v.elements {
			elements = append(elements, element)
		}
		require.Equal(t, len(elements) > 0, left.len() > 0)
		i := 0
		for element := range left.elements {
			require.Less(t, i, len(elements))
			requirePart(t, element, elements[i])
			i++
		}
	case v.isString():
		require.True(t, left.isString())
		require.Equal(t, v.hasText(), left.hasText())
		require.True(t, bytes.HasPrefix(v.raw(), left.raw()))
	default:
		require.Equal(t, string(v), string(left))
	}
}
