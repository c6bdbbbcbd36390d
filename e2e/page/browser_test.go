// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// tab is a page in a headless Chromium of its own.
type tab struct {
	t        *testing.T
	ctx      context.Context
	expected []string

	// mu guards console.
	mu      sync.Mutex
	console []string
}

// chromium returns the path of Chromium or Chrome. The machines of CI services have one of these
// names; what Ubuntu calls chromium-browser may only say how to install it.
func chromium(t *testing.T) string {
	t.Helper()
	return testenv.Program(t, "chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
}

// openTab starts Chromium and opens an address. The test fails at its end if the page
// wrote an error or a warning to the console that it does not expect.
func openTab(t *testing.T, url string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until Chromium has ended
		cancelTab()
	})
	p := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if kind := string(message.Type); kind != "error" && kind != "warning" && !message.IsException() {
				continue
			}
			p.mu.Lock()
			p.console = append(p.console, strings.TrimSpace(message.String()+" "+message.URL))
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, message := range p.console {
			if !slices.ContainsFunc(p.expected, func(text string) bool { return strings.Contains(message, text) }) {
				t.Errorf("the page wrote to the console: %s", message)
			}
		}
		if t.Failed() {
			p.screenshot("failed-" + strings.ReplaceAll(t.Name(), "/", "-"))
		}
	})
	p.open(url)
	return p
}

func (p *tab) open(url string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.Navigate(url)))
}

// expect ignores what the page writes to the console if it contains text: the browser
// reports a lost connection there.
func (p *tab) expect(text string) { p.expected = append(p.expected, text) }

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, steps...))
}

// press sends keys to the focused element.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// tabUntil presses Tab until an expression is true, at most 200 times.
func (p *tab) tabUntil(expression string) {
	p.t.Helper()
	for range 200 {
		if p.is(expression) {
			return
		}
		p.press(keyTab)
	}
	require.Fail(p.t, "keyboard does not get there", "%s; focus is on %s", expression, p.text("document.activeElement.outerHTML.slice(0, 200)"))
}

func (p *tab) is(expression string) bool {
	p.t.Helper()
	return evaluate[bool](p, "Boolean("+expression+")")
}

func (p *tab) text(expression string) string {
	p.t.Helper()
	return evaluate[string](p, "String("+expression+")")
}

// waitUntil waits until a JavaScript expression is true. Exceptions count as false.
func (p *tab) waitUntil(expression string) {
	p.t.Helper()
	deadline := time.Now().Add(collector.Patience)
	for !p.is("(() => { try { return " + expression + " } catch { return false } })()") {
		if time.Now().After(deadline) {
			require.Fail(p.t, "the page does not get there", "%s\n%s", expression, p.text("document.body.innerText.slice(0, 3000)"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// waitUntilLoaded waits until the numbers of all parts in view are there.
func (p *tab) waitUntilLoaded() {
	p.t.Helper()
	p.waitUntil(`document.querySelector('.status').dataset.state === 'live' && document.querySelector('#trends .legend tbody tr')`)
}

// show scrolls a part of the page into view and waits until it has loaded.
func (p *tab) show(id string) {
	p.t.Helper()
	p.do(script(`document.getElementById('` + id + `').scrollIntoView(); undefined`))
	p.waitUntil(`document.querySelector('#` + id + `').ariaBusy !== 'true' && document.querySelector('#` + id + ` :is(canvas, .stack, .notice)')`)
}

// look sets the size of the window and the colour scheme of the system.
func (p *tab) look(width, height int64, scheme string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(p.t, err)
	p.do(chromedp.EmulateViewport(width, height))
}

// screenshot writes what is in view to .cache/screenshots, which git ignores.
func (p *tab) screenshot(name string) {
	p.t.Helper()
	folder := filepath.Join(testenv.Root(p.t), ".cache", "screenshots")
	require.NoError(p.t, os.MkdirAll(folder, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(folder, name+".png"), p.image(), 0o600))
}

// image returns what is in view as PNG.
func (p *tab) image() []byte {
	p.t.Helper()
	image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	return image
}

func script(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression, chromedp.EvalAwaitPromise)
}

// evaluate returns the value of a JavaScript expression, awaiting a promise.
func evaluate[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

const (
	keyTab   = kb.Tab
	keyEnter = kb.Enter
	keyDown  = kb.ArrowDown
	keyLeft  = kb.ArrowLeft
	keyHome  = kb.Home
	keyEnd   = kb.End
)
