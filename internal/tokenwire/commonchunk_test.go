package tokenwire

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func TestCommonChunks(t *testing.T) {
	const at = 1795233292181556000
	tests := map[string]struct {
		line string
		want assembly.Chunk
	}{
		"as the contract has it": {chunkLine, assembly.Chunk{UnixNano: at, Tokens: 1}},
		"as Python writes it": {
			`{"event": "chunk", "stream_id": "stream-1", "time_unix_nano": 1795233292181556000, "tokens": 12, "channel": "tool_call"}`,
			assembly.Chunk{UnixNano: at, Tokens: 12, Channel: timeline.ToolCall},
		},
		"in alphabetical order": {
			`{"channel":"reasoning","event":"chunk","seq":7,"stream_id":"stream-1","time_unix_nano":"1795233292181556000","tokens":"0"}`,
			assembly.Chunk{UnixNano: at, Seq: 7, Numbered: true, Channel: timeline.Reasoning},
		},
		"what is needed, and no more": {
			`{"stream_id":"stream-1","time":"2026-11-21T03:54:52.181556Z","event":"chunk"}`,
			assembly.Chunk{UnixNano: at, Tokens: 1},
		},
		"a number at the end": {
			`{"event":"chunk","stream_id":"stream-1","time_unix_nano":"1795233292181556000","seq":0}`,
			assembly.Chunk{UnixNano: at, Numbered: true, Tokens: 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var common commonChunk
			require.True(t, common.read([]byte(test.line)))
			require.Equal(t, "stream-1", string(common.id))
			require.Equal(t, test.want, common.chunk)
		})
	}
}

// requireSame decodes lines twice, as they come and all with the general reader,
// and requires the same errors and, after each line, the same batch.
func requireSame(t *testing.T, lines [][]byte) (common int) {
	t.Helper()
	store := newStore()
	batch, want := store.NewBatch(), store.NewBatch()
	var decoder, general NDJSON
	for i, line := range lines {
		before := bytes.Clone(line)
		err, wantErr := decoder.Decode(line, i+1, batch), general.decodeAny(line, i+1, want)
		require.Equal(t, wantErr, err, "line %q", line)
		require.Equal(t, before, line, "the line was changed")
		require.Equal(t, want, batch, "line %q", line)
		if new(commonChunk).read(line) {
			common++
		}
	}
	return common
}

// What members are made of besides what is common: all that is close to it.
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

// oddLine returns a line that is common, or nearly, or was.
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
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	blanks := random.IntN(3) == 0
	var line strings.Builder
	blank := func() {
		if blanks {
			line.WriteString(oddBlanks[random.IntN(len(oddBlanks))])
		}
	}
	oddName, oddValue := random.IntN(4*len(members)), random.IntN(2*len(members)) // none, mostly
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

func TestCommonChunksAreReadAsAnyLine(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	common, all := 0, 0
	for range 2_000 {
		lines := make([][]byte, 10)
		for i := range lines {
			lines[i] = oddLine(random)
		}
		common += requireSame(t, lines)
		all += len(lines)
	}
	require.Greater(t, common, all/10)
	require.Greater(t, all-common, all/10)
}

// Each value with each name, at the end of a line and before it.
func TestEveryMemberIsReadAsInAnyLine(t *testing.T) {
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
			requireSame(t, [][]byte{[]byte("{" + member + "," + rest + "}"), []byte("{" + rest + "," + member + "}")})
		}
	}
}

func FuzzCommonChunks(f *testing.F) {
	f.Add([]byte(chunkLine))
	f.Add([]byte(`{"event": "chunk", "stream_id": "s", "time": "2026-11-21T03:54:52.181556Z", "seq": 1}`))
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		f.Add(bytes.Join([][]byte{oddLine(random), oddLine(random), oddLine(random)}, []byte("\n")))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		requireSame(t, bytes.Split(lines, []byte("\n")))
	})
}
