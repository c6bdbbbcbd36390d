// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build media

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// TestLivePageMedia writes the pictures in docs/images: two screenshots and a recording of
// five minutes of traffic, in which a second, overloaded service starts. Nothing in them is made up.
func TestLivePageMedia(t *testing.T) {
	images := filepath.Join(testenv.Root(t), "docs", "images")
	require.NoError(t, os.MkdirAll(images, 0o755))
	c := collector.Start(t, collector.Example(t, "live-page.yaml"))
	collector.StartProcess(t, collector.Built(t, "tokenpulse"), "generate", "--rate", "10", "--endpoint", c.HTTP)
	time.Sleep(210 * time.Second)
	collector.StartProcess(t, collector.Built(t, "tokenpulse"), "generate", "--service", "overloaded", "--rate", "6", "--queue-limit", "60", "--concurrency", "18", "--endpoint", c.HTTP)
	time.Sleep(80 * time.Second)

	p := openTab(t, c.PageURL(""))
	p.look(1280, 800, "light")
	p.waitUntilLoaded()
	frames := video{folder: t.TempDir(), p: p}
	for range 8 {
		frames.add(500 * time.Millisecond)
	}
	for _, part := range []string{"trends", "heatmap", "load", "slowest", "compare"} {
		p.do(script(`document.getElementById('` + part + `').scrollIntoView({behavior: 'smooth'}); undefined`))
		for range 5 {
			frames.add(120 * time.Millisecond)
		}
		for range 3 {
			frames.add(600 * time.Millisecond)
		}
	}
	p.do(script(`scrollTo(0, 0)`))
	for range 2 {
		p.look(1280, 800, "dark")
		frames.add(900 * time.Millisecond)
	}
	frames.write(filepath.Join(images, "live-page.webp"))

	p.open(c.PageURL(""))
	for _, scheme := range []string{"light", "dark"} {
		p.look(1440, 7000, scheme)
		p.waitUntil(`document.querySelector('#slowest tbody tr') && document.querySelector('#compare tbody tr')`)
		p.look(1440, 1960, scheme)
		p.writeImage(filepath.Join(images, "live-page-"+scheme+".webp"))
	}
}

// TestReportMedia writes the picture of a report: of simulated engines that take ever more load for half an hour.
func TestReportMedia(t *testing.T) {
	folder := t.TempDir()
	events := filepath.Join(folder, "events.ndjson")
	collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--rate", "2", "--peak-rate", "7", "--period", "1h", "--duration", "30m", "--seed", "7", "--output", events)
	slos := collector.WriteFile(t, folder, "slos.yaml", `
slos:
  - {name: ttft, indicator: time_to_first_token, threshold: 1s}
  - {name: tpot, indicator: time_per_output_token, threshold: 40ms}
objectives:
  - {slo: ttft, objective: 0.95}
  - {slo: tpot, objective: 0.95}
`)
	report := filepath.Join(folder, "report.html")
	collector.Run(t, collector.Built(t, "tokenpulse"), "report", events, "--slos", slos, "--by", "gen_ai.request.model", "--format", "html", "-o", report)
	p := openReport(t, "file://"+report)
	for _, scheme := range []string{"light", "dark"} {
		p.look(1440, 7000, scheme)
		p.waitUntil(`document.querySelector('#slowest tbody tr') && document.querySelector('#compare tbody tr')`)
		p.look(1440, 1000, scheme)
		p.writeImage(filepath.Join(testenv.Root(t), "docs", "images", "report-"+scheme+".webp"))
	}
}

// writeImage writes what is in view as WebP.
func (p *tab) writeImage(name string) {
	p.t.Helper()
	time.Sleep(time.Second) // canvases are drawn after the next layout
	shot := filepath.Join(p.t.TempDir(), "shot.png")
	require.NoError(p.t, os.WriteFile(shot, p.image(), 0o600))
	collector.Run(p.t, testenv.Program(p.t, "cwebp"), "-quiet", "-lossless", "-near_lossless", "60", shot, "-o", name)
}

// video is a list of frames and how long each is shown.
type video struct {
	folder string
	p      *tab
	files  []string
}

func (v *video) add(shown time.Duration) {
	v.p.t.Helper()
	name := filepath.Join(v.folder, fmt.Sprintf("%03d.png", len(v.files)))
	require.NoError(v.p.t, os.WriteFile(name, v.p.image(), 0o600))
	v.files = append(v.files, "-d", fmt.Sprint(shown.Milliseconds()), name)
}

// write makes an animated WebP of the frames.
func (v *video) write(name string) {
	v.p.t.Helper()
	collector.Run(v.p.t, testenv.Program(v.p.t, "img2webp"), append(append([]string{"-loop", "0", "-lossy", "-q", "60", "-m", "4"}, v.files...), "-o", name)...)
	info, err := os.Stat(name)
	require.NoError(v.p.t, err)
	require.Less(v.p.t, info.Size(), int64(2_000_000), "the recording is too large for the README")
}
