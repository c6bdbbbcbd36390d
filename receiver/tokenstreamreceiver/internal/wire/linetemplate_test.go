// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// requireSame decodes lines twice, once without the template, and requires the same
// errors and, after each line, the same batch. It returns the number of lines that matched
// the template.
func requireSame(t *testing.T, lines [][]byte) (matched int) {
	t.Helper()
	store := newStore()
	batch, want := store.NewBatch(), store.NewBatch()
	var decoder, plain NDJSON
	for i, line := range lines {
		if matches(&decoder, line) {
			matched++
		}
		before := bytes.Clone(line)
		err, wantErr := decoder.Decode(line, i+1, batch), plain.decodePlain(line, i+1, want)
		require.Equal(t, wantErr, err, "line %q", line)
		require.Equal(t, before, line, "the line was changed")
		require.Equal(t, want, batch, "line %q", line)
	}
	return matched
}

func matches(decoder *NDJSON, line []byte) bool {
	_, ok := decoder.template.match(line, new(assembly.Chunk))
	return ok
}

// Names, values and blanks that are close to those of usual lines.
var (
	oddNames = []string{
		"event", "stream_id", "time_unix_nano", "tokens", "channel", "seq", "time", "text", "usage", "attributes", "resource", "cancelled",
		"Event", "event ", "even", "stream_ix", "time_unix_nanos", "tokens2", "channels", "seq1", "", `\u0065vent`, "tok\xffens", "séq",
	}
	oddValues = []string{
		`"chunk"`, `"chunks"`, `"chun\u006b"`, `"end"`, `"start"`, `"scheduled"`, `"chunk`, `chunk`,
		`"s"`, `"stream-1"`, `"stream-2"`, `"12345678"`, `"123456789"`, `"ström"`, `"a\"b"`, `"a\\"`, `"\ud800"`, "\"\x01\"", "\"1234567\x1f\"", "\"1234567\x7f\"", "\"1234\xff67\"", `""`, `"` + strings.Repeat("x", 300) + `"`,
		`1795233292181556000`, `"1795233292181556000"`, `"01795233292181556000"`, `"1795233292181556000`, `"17952332921815560001"`, `01795233292181556000`, `1795233292181556001`, `1795233292181556000.0`, `1.795233292181556e18`,
		`"2026-11-21T03:54:52.181556Z"`, `"2026-11-21T03:54:52.181556+01:00"`, `"2026-11-21 03:54:52Z"`, `"1969-11-21T03:54:52Z"`, `"9026-11-21T03:54:52Z"`,
		`0`, `1`, `-0`, `-1`, `00`, `"00"`, `"1"`, `"-1"`, `"+1"`, `" 1"`, `1048576`, `1048577`, `4294967295`, `4294967296`, `9223372036854775807`, `9223372036854775808`, `9999999999999999999`, `18446744073709551616`, `"12345678/"`, `"1234567:"`, `12345678901234567890123456`, `1e3`, `0x1`, `1_0`, `"12`, `"12,"seq":1`,
		`"content"`, `"reasoning"`, `"tool_call"`, `"Content"`, `"contents"`, `"conten\u0074"`, `"tool_cal"`,
		`null`, `true`, `false`, `nul`, `{}`, `[]`, `{"a":1,"a":2}`, `[1,`, `{"output_tokens":3}`, ``,
	}
	oddBlanks = []string{"", "", "", "", "", " ", " ", "  ", "\t", "\r", "\n", "\u00a0", ","}
)

// oddLine returns a usual chunk line, or one that differs a little from it.
func oddLine(random *rand.Rand) []byte {
	const time = "1795233292181556000"
	members := [][]string{
		{"event", `"chunk"`},
		{"stream_id", `"s"`, `"stream-1"`, `"stream-2-and-then-some"`},
		{"time_unix_nano", time, `"` + time + `"`, `"1795233292181557001"`, `1795233292881557001`},
	}
	for _, more := range [][]string{
		{"tokens", `1`, `1`, `0`, `3`, `"20"`},
		{"channel", `"content"`, `"reasoning"`, `"tool_call"`},
		{"seq", `0`, `1`, `2`, `"3"`, `9223372036854775807`, `9223372036854775808`},
		{"time", `"2026-11-21T03:54:52.181556Z"`},
		{"tokens", `1`},
	} {
		if random.IntN(3) == 0 {
			members = append(members, more)
		}
	}
	if random.IntN(8) == 0 {
		members = members[1:]
	}
	if random.IntN(2) == 0 {
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	blanks := random.IntN(3) == 0
	var line strings.Builder
	blank := func() {
		if blanks {
			line.WriteString(oddBlanks[random.IntN(len(oddBlanks))])
		}
	}
	oddName, oddValue := random.IntN(4*len(members)), random.IntN(2*len(members)) // most lines have neither
	line.WriteByte('{')
	for i, member := range members {
		if i > 0 {
			line.WriteByte(',')
		}
		blank()
		name, values := member[0], member[1:]
		if i == oddName {
			name = oddNames[random.IntN(len(oddNames))]
		}
		if i == oddValue {
			values = oddValues
		}
		line.WriteString(`"` + name + `"`)
		blank()
		line.WriteByte(':')
		blank()
		line.WriteString(values[random.IntN(len(values))])
		blank()
	}
	line.WriteByte('}')
	blank()
	text := []byte(line.String())
	switch random.IntN(16) {
	case 0:
		text = text[:random.IntN(len(text))]
	case 1:
		text = append(text, text[random.IntN(len(text)):]...)
	case 2:
		text[random.IntN(len(text))] = byte(random.IntN(256))
	}
	return text
}

// Each name with each value, as the first and as the last member of a line.
func TestLineTemplate_AgreesOnEveryMember(t *testing.T) {
	likely := [][2]string{{"event", `"chunk"`}, {"stream_id", `"s"`}, {"time_unix_nano", `1795233292181556000`}}
	for _, name := range oddNames {
		var others []string
		for _, other := range likely {
			if other[0] != name && (name != "time" || other[0] != "time_unix_nano") {
				others = append(others, `"`+other[0]+`":`+other[1])
			}
		}
		rest := strings.Join(others, ",")
		for _, value := range oddValues {
			member := `"` + name + `":` + value
			first, last := []byte("{"+member+","+rest+"}"), []byte("{"+rest+","+member+"}")
			requireSame(t, [][]byte{first, first, last, last})
		}
	}
}

// altered returns a line with one change: of a value, a length or a byte.
func altered(random *rand.Rand, line []byte) []byte {
	const bytesOfLines = "\"\\,:{} 019x\r\x1f\x7f\xff"
	if len(line) == 0 {
		return line
	}
	at, other := random.IntN(len(line)), bytesOfLines[random.IntN(len(bytesOfLines))]
	before, after := line[:at], line[at:]
	switch random.IntN(6) {
	case 0:
		return bytes.Clone(before)
	case 1:
		return slices.Concat(before, []byte{other}, after)
	case 2:
		return slices.Concat(before, after[1:])
	case 3:
		return slices.Concat(before, []byte{other}, after[1:])
	default:
		colon := bytes.IndexByte(after, ':')
		if colon < 0 {
			return line
		}
		value := at + colon + 1
		end := bytes.IndexAny(line[value:], ",}")
		if end < 0 {
			return line
		}
		return slices.Concat(line[:value], []byte(oddValues[random.IntN(len(oddValues))]), line[value+end:])
	}
}

// learnedLine returns an oddLine of which a template is made.
func learnedLine(random *rand.Rand) []byte {
	batch := newStore().NewBatch()
	for {
		var decoder NDJSON
		line := oddLine(random)
		if decoder.Decode(line, 1, batch) == nil && matches(&decoder, line) {
			return line
		}
	}
}

// Lines of one sender, of which some differ a little from the others.
func TestLineTemplate_AgreesWithPlainReader(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	matched, all := 0, 0
	for range 2_000 {
		line := learnedLine(random)
		lines := [][]byte{line}
		for range 4 {
			again := altered(random, line)
			lines = append(lines, again, line, altered(random, again))
		}
		matched += requireSame(t, lines)
		all += len(lines)
	}
	require.Greater(t, matched, all/10)
	require.Greater(t, all-matched, all/10)
}

func TestLineTemplate_MatchesAndRefuses(t *testing.T) {
	const compact = `{"event":"chunk","stream_id":"a","time_unix_nano":"1795233292000000000","tokens":2,"channel":"reasoning"}`
	const python = `{"event": "chunk", "stream_id": "a", "time_unix_nano": 1795233292000000000, "tokens": 2}`
	const short = `{"time_unix_nano":1795233292000000000,"stream_id":"a","event":"chunk"}`
	const numbered = `{"event":"chunk","seq":1,"stream_id":"a","time_unix_nano":1795233292000000000}`
	for name, test := range map[string]struct {
		lines   string // the last one is matched or refused
		matches bool
	}{
		"the same again":            {compact + "\n" + compact, true},
		"another stream and time":   {compact + "\n" + `{"event":"chunk","stream_id":"stream-1","time_unix_nano":"1795233292181556000","tokens":2,"channel":"reasoning"}`, true},
		"with blanks":               {python + "\n" + `{"event": "chunk", "stream_id": "stream-1", "time_unix_nano": 1795233292181556000, "tokens": 2}`, true},
		"time before the ID":        {short + "\n" + `{"time_unix_nano":1795233292181556000,"stream_id":"stream-1","event":"chunk"}`, true},
		"another sequence number":   {numbered + "\n" + strings.Replace(numbered, `"seq":1`, `"seq":12`, 1), true},
		"other tokens, at first":    {python + "\n" + strings.Replace(python, `"tokens": 2`, `"tokens": 12`, 1), false},
		"other tokens, then":        {python + "\n" + strings.Replace(python, `"tokens": 2`, `"tokens": 12`, 1) + "\n" + strings.Replace(python, `"tokens": 2`, `"tokens": 7`, 1), true},
		"another channel, at first": {compact + "\n" + strings.Replace(compact, "reasoning", "content", 1), false},
		"another channel, then":     {compact + "\n" + strings.Replace(compact, "reasoning", "content", 1) + "\n" + strings.Replace(compact, "reasoning", "tool_call", 1), true},
		"too many tokens":           {python + "\n" + strings.Replace(python, `"tokens": 2`, `"tokens": 12`, 1) + "\n" + strings.Replace(python, `"tokens": 2`, `"tokens": 4294967297`, 1), false},
		"a channel without quotes": {compact + "\n" + strings.Replace(compact, "reasoning", "content", 1) + "\n" +
			strings.Replace(compact, `"reasoning"`, "null\t", 1) + "\n" + strings.Replace(compact, `"reasoning"`, "content\t", 1), false},
		"an unknown channel":         {compact + "\n" + strings.Replace(compact, "reasoning", "content", 1) + "\n" + strings.Replace(compact, "reasoning", "tool", 1), false},
		"members left out":           {compact + "\n" + `{"event":"chunk","stream_id":"a","time_unix_nano":"1795233292000000000"}`, false},
		"many blanks":                {short + strings.Repeat(" ", maxTemplateLine) + "\n" + short + strings.Repeat(" ", maxTemplateLine), false},
		"an unknown member":          {`{"text":"a",` + short[1:] + "\n" + `{"text":"a",` + short[1:], false},
		"another event":              {strings.Replace(short, "chunk", "scheduled", 1) + "\n" + strings.Replace(short, "chunk", "scheduled", 1), false},
		"ends behind the time":       {compact + "\n" + `{"event":"chunk","stream_id":"a","time_unix_nano":"1795233292000000000`, false},
		"no quote behind the time":   {compact + "\n" + strings.Replace(compact, `0",`, `0,`, 1), false},
		"a quote behind a bare time": {python + "\n" + strings.Replace(python, `0,`, `0",`, 1), false},
		"a digit too many":           {compact + "\n" + strings.Replace(compact, `0",`, `00",`, 1), false},
		"a time out of range":        {short + "\n" + strings.Replace(short, "1795233292000000000", "9223372036854775808", 1), false},
		"a zero in front":            {short + "\n" + strings.Replace(short, "1795", "0795", 1), false},
		"a fraction":                 {short + "\n" + strings.Replace(short, "000,", "000.0,", 1), false},
		"an ID with a backslash":     {compact + "\n" + strings.Replace(compact, `"a"`, `"a\"`, 1), false},
		"the event once more":        {short + "\n" + strings.TrimSuffix(short, "}") + `,"event":"chunk"}`, false},
		"text behind the end":        {short + "\n" + short + "}", false},
	} {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(test.lines, "\n")
			last := len(lines) - 1
			batch := newStore().NewBatch()
			var decoder NDJSON
			for i, line := range lines[:last] {
				require.NoError(t, decoder.Decode([]byte(line), i+1, batch))
			}
			require.Equal(t, test.matches, matches(&decoder, []byte(lines[last])))
		})
	}
}

// A template has no stream ID, no time and no text of unknown members.
func TestLineTemplate_KeepsNoValues(t *testing.T) {
	batch := newStore().NewBatch()
	var decoder NDJSON
	for _, line := range []string{
		`{"event":"chunk","stream_id":"Alice","time_unix_nano":"1795233292181556000","text":"Alice"}`,
		`{"event":"chunk","text":"Alice","stream_id":"Alice","time_unix_nano":"1795233292181556000"}`,
		`{"event":"chunk","stream_id":"Alice","time_unix_nano":"1795233292181556000","tokens":1}`,
		`{"event":"chunk","stream_id":"Alice","time_unix_nano":"1795233292181556000","tokens":1,"text":"Alice"}`,
		`{"event":"chunk","stream_id":"Alice","time_unix_nano":"1795233292181556000","tokens":2,"channel":"content"}`,
	} {
		require.NoError(t, decoder.Decode([]byte(line), 1, batch))
		text := decoder.template.text
		kept := string(text[:cap(text)])
		require.NotContains(t, kept, "Alice")
		require.NotContains(t, kept, "1795")
	}
	want := `{"event":"chunk","stream_id":"","time_unix_nano":"",` + `"tokens":,"channel":"content"}`
	require.Equal(t, want, string(decoder.template.text), "which is no JSON")
}

func FuzzLineTemplate(f *testing.F) {
	f.Add([]byte(chunkLine))
	f.Add([]byte(`{"event": "chunk", "stream_id": "s", "time": "2026-11-21T03:54:52.181556Z", "seq": 1}`))
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		line := learnedLine(random)
		f.Add(bytes.Join([][]byte{oddLine(random), line, line, altered(random, line), altered(random, line), line}, []byte("\n")))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		requireSame(t, bytes.Split(lines, []byte("\n")))
	})
}

// BenchmarkFormats decodes lines of many streams, in the formats of several senders.
func BenchmarkFormats(b *testing.B) {
	channels := []string{"content", "reasoning"}
	random := rand.New(rand.NewPCG(9, 10))
	for name, write := range map[string]func(stream int, at int64) string{
		"as documented": func(stream int, at int64) string {
			return fmt.Sprintf(`{"event":"chunk","stream_id":"stream-%04d","time_unix_nano":"%d","tokens":1,"channel":"content"}`, stream, at)
		},
		"as Python formats it": func(stream int, at int64) string {
			return fmt.Sprintf(`{"event": "chunk", "stream_id": "stream-%04d", "time_unix_nano": %d, "tokens": 1, "channel": "content"}`, stream, at)
		},
		"in alphabetical order": func(stream int, at int64) string {
			return fmt.Sprintf(`{"channel":"content","event":"chunk","stream_id":"stream-%04d","time_unix_nano":"%d","tokens":1}`, stream, at)
		},
		"time first": func(stream int, at int64) string {
			return fmt.Sprintf(`{"event":"chunk","time_unix_nano":"%d","stream_id":"stream-%04d","tokens":1,"channel":"content"}`, at, stream)
		},
		"numbered": func(stream int, at int64) string {
			return fmt.Sprintf(`{"event":"chunk","stream_id":"stream-%04d","time_unix_nano":"%d","tokens":1,"channel":"content","seq":%d}`, stream, at, at%1000)
		},
		"some with several tokens": func(stream int, at int64) string {
			return fmt.Sprintf(`{"event":"chunk","stream_id":"stream-%04d","time_unix_nano":"%d","tokens":%d,"channel":"content"}`, stream, at, 1+random.IntN(12))
		},
		"some reasoning": func(stream int, at int64) string {
			return fmt.Sprintf(`{"event":"chunk","stream_id":"stream-%04d","time_unix_nano":"%d","tokens":1,"channel":"%s"}`, stream, at, channels[random.IntN(2)])
		},
	} {
		lines := make([][]byte, 256)
		for i := range lines {
			lines[i] = []byte(write(random.IntN(50), 1795233292181556000+1_234_567*int64(i)))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			batch := newStore().NewBatch()
			var decoder NDJSON
			for i := 0; b.Loop(); i++ {
				if err := decoder.Decode(lines[i%len(lines)], 1, batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
