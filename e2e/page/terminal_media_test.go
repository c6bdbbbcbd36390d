// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build media

package page

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The size of the terminal.
const columns, lines = 104, 44

// session is what is typed. Its end is in the picture.
var session = []string{
	"for i in 1 2 3; do tokenpulse generate --output run$i.jsonl --requests 2000 --rate 20 --seed $i --model llama=$(test $i = 3 && echo 0.7 || echo 1); done; clear",
	"tokenpulse report run1.jsonl --slos slos.yaml --by gen_ai.request.model",
	"tokenpulse compare run1.jsonl run2.jsonl --slos slos.yaml --slo all; echo exit code $?",
	"tokenpulse compare run1.jsonl run3.jsonl --slos slos.yaml --slo all; echo exit code $?",
}

const slosOfSession = `slos:
  - {name: ttft, indicator: time_to_first_token, threshold: 1s}
  - {name: tpot, indicator: time_per_output_token, threshold: 30ms}
objectives:
  - {slo: all, objective: 0.8}
`

// TestTerminalMedia writes docs/images/offline.webp: a session in tmux, in which a run is reported and compared with two others.
func TestTerminalMedia(t *testing.T) {
	folder, tmux := t.TempDir(), testenv.Program(t, "tmux")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "slos.yaml"), []byte(slosOfSession), 0o600))
	socket := filepath.Join(folder, "tmux")
	do := func(args ...string) string { return collector.Run(t, tmux, append([]string{"-S", socket}, args...)...) }
	path := filepath.Dir(collector.Built(t, "tokenpulse")) + ":" + os.Getenv("PATH")
	do("-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(lines), "-c", folder, "env", "PATH="+path, "PS1=$ ", "bash", "--norc")
	defer do("kill-server")
	for i, line := range session {
		do("send-keys", line, "Enter")
		done := fmt.Sprintf("done%d", i)
		do("send-keys", "touch "+done, "Enter")
		require.Eventually(t, func() bool {
			_, err := os.Stat(filepath.Join(folder, done))
			return err == nil
		}, 2*time.Minute, 100*time.Millisecond, line)
	}
	time.Sleep(time.Second)
	var shown []string
	for line := range strings.Lines(do("capture-pane", "-p", "-S", "-200")) {
		if !strings.Contains(line, "touch done") && strings.TrimSpace(line) != "$" {
			shown = append(shown, line)
		}
	}
	text := strings.TrimSpace(strings.Join(shown, ""))

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!DOCTYPE html><title>terminal</title><style>body{margin:0;background:#111}pre{margin:0;padding:12px;color:#ddd;font:13px/17px monospace}</style><pre>%s</pre>`, html.EscapeString(text))
	}))
	defer server.Close()
	p := openTab(t, server.URL)
	p.look(columns*8+24, int64(17*(strings.Count(text, "\n")+1)+24), "dark")
	shot := filepath.Join(folder, "shot.png")
	require.NoError(t, os.WriteFile(shot, p.image(), 0o600))
	collector.Run(t, testenv.Program(t, "cwebp"), "-quiet", "-lossless", shot, "-o", filepath.Join(testenv.Root(t), "docs", "images", "offline.webp"))
}
