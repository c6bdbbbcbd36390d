// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// withLiveness judges upstreams, which may be silent for a second.
func withLiveness(cfg *Config) {
	config := defaultLiveness()
	config.Server.NetAddr.Endpoint = "localhost:0"
	config.Engines.Bound, config.Engines.MaxBound = time.Second, time.Second
	cfg.Liveness = configoptional.Some(config)
}

// after returns the verdict on the only upstream if nothing comes for so long from now on. The engine remembers verdicts,
// so that those of later times come last.
func (p *tap) after(silence time.Duration) liveness.Verdict {
	p.t.Helper()
	p.receiver.testify()
	return p.receiver.routes[0].engine.Verdict(engines.Now() + silence)
}

func (p *tap) requireVerdict(silence time.Duration, state liveness.State, reason liveness.Reason) {
	p.t.Helper()
	v := p.after(silence)
	require.Equal(p.t, [2]string{state.String(), reason.String()}, [2]string{v.State.String(), v.Reason.String()}, "%+v", v)
}

// scripted is an upstream that takes requests whole. Each answer is what the test says.
type scripted struct {
	*tap
	asked chan *http.Request
	say   chan string // of the last request; empty text ends the answer
}

// unknownEncoding is text in an encoding that the tap does not know.
const unknownEncoding = "x-encoded"

func startScripted(t *testing.T, change ...func(*Config)) *scripted {
	t.Helper()
	s := &scripted{asked: make(chan *http.Request, 100), say: make(chan string)}
	s.tap = start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.asked <- r
		if r.Header.Get("Accept") != "" { // whole answers, which do not wait
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, chatAnswer(3))
			return
		}
		for {
			select {
			case text := <-s.say:
				if text == "" {
					return
				}
				if w.Header().Get("Content-Type") == "" {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				if text == unknownEncoding {
					w.Header().Set("Content-Encoding", unknownEncoding)
				}
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}, append([]func(*Config){withLiveness}, change...)...)
	return s
}

// open sends a request to a model. It returns once the receiver knows that the engine has it, which may be later.
func (s *scripted) open(path, body string) {
	s.t.Helper()
	before := s.after(0)
	s.send(path, body)
	require.Eventually(s.t, func() bool { v := s.after(0); return v.Open() > before.Open() }, time.Minute, time.Millisecond)
}

// send sends a request whose answer is read until the test ends. It returns once the engine has it.
func (s *scripted) send(path, body string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	go func() {
		if response, err := client(s.t).Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	<-s.asked
}

// upload sends the first half of a request. finish sends the rest, and returns once the engine has all of it.
func (s *scripted) upload(text string) (finish func()) {
	s.t.Helper()
	body, upload := io.Pipe()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+chatPath, body)
	require.NoError(s.t, err)
	go func() {
		if response, err := client(s.t).Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	write := func(part string) {
		s.t.Helper()
		_, err := io.WriteString(upload, part)
		require.NoError(s.t, err)
	}
	half := len(text) / 2
	write(text[:half])
	return func() {
		s.t.Helper()
		write(text[half:])
		require.NoError(s.t, upload.Close())
		<-s.asked
	}
}

// produce lets the engine answer a request, so that it is known to produce tokens.
func (s *scripted) produce() {
	s.t.Helper()
	s.answer()
	require.Eventually(s.t, func() bool { return s.after(0).State == liveness.Idle }, time.Minute, time.Millisecond)
}

// answer lets the engine answer a request at once.
func (s *scripted) answer() {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+chatPath, strings.NewReader(chatRequest))
	require.NoError(s.t, err)
	request.Header.Set("Accept", "text/event-stream")
	response, err := client(s.t).Do(request)
	require.NoError(s.t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, response.Body.Close())
	<-s.asked
}

// hear says text, and waits until its tokens are known.
func (s *scripted) hear(text string) {
	s.t.Helper()
	before := engines.Now()
	s.say <- text
	require.Eventually(s.t, func() bool { return s.after(0).LastToken >= before }, time.Minute, time.Millisecond)
}

func TestEngine_StuckBeforeTheFirstTokenAndWithinAnAnswer(t *testing.T) {
	s := startScripted(t)
	s.requireVerdict(time.Hour, liveness.Unknown, liveness.NeverToken)
	s.produce()
	s.requireVerdict(time.Hour, liveness.Idle, liveness.None)
	s.open(chatPath, chatRequest)
	v := s.after(0)
	require.Equal(t, liveness.Producing, v.State)
	require.Equal(t, 1, v.Waiting)
	require.EqualValues(t, len(chatRequest), v.Largest)
	requireStuck := func() {
		t.Helper()
		require.Eventually(t, func() bool { return s.after(0).State == liveness.Stuck }, time.Minute, time.Millisecond)
	}
	requireStuck()
	s.hear(roleEvent + tokenEvent)
	v = s.after(0)
	require.Equal(t, liveness.Producing, v.State)
	require.Equal(t, 1, v.Decoding)
	requireStuck()
	s.hear(tokenEvent)
	s.requireVerdict(0, liveness.Producing, liveness.None)
	s.say <- finishEvent + usageEvent + doneEvent
	s.say <- ""
	require.Eventually(t, func() bool { return s.after(0).State == liveness.Idle }, time.Minute, time.Millisecond)
}

// Each second, the receiver itself judges what no test passes on.
func TestEngine_IsJudgedEverySecond(t *testing.T) {
	s := startScripted(t)
	name := engineName(s.receiver.routes[0].endpoint)
	state := func() string {
		for _, status := range engines.Statuses() {
			if status.Engine == name {
				return status.State.String()
			}
		}
		return "not listed"
	}
	requireState := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return state() == want }, 10*time.Second, 10*time.Millisecond, "%s", state())
	}
	requireState("unknown")
	s.produce()
	requireState("idle")
	s.open(chatPath, chatRequest)
	s.say <- tokenEvent
	requireState("producing")
	requireState("stuck")
	s.say <- tokenEvent
	requireState("producing")
	require.NoError(t, s.receiver.Shutdown(t.Context()))
	require.Equal(t, "not listed", state())
}

// A client that uploads slowly does not blame the engine, which has nothing to answer.
func TestEngine_HasARequestOnceItHasAllOfIt(t *testing.T) {
	s := startScripted(t)
	s.produce()
	finish := s.upload(chatRequest)
	for range 50 {
		s.requireVerdict(time.Hour, liveness.Idle, liveness.None)
		time.Sleep(time.Millisecond)
	}
	finish()
	require.Eventually(t, func() bool { return s.after(0).Largest == int64(len(chatRequest)) }, time.Minute, time.Millisecond)
	s.requireVerdict(time.Hour, liveness.Stuck, liveness.NoToken)
}

// The engine has this request long after the tap.
func TestEngine_TokensAfterALongUploadHaveTheTimeAtWhichTheyCame(t *testing.T) {
	s := startScripted(t)
	finish := s.upload(chatRequest)
	time.Sleep(200 * time.Millisecond)
	finish()
	require.Eventually(t, func() bool { return s.after(0).Waiting == 1 }, time.Minute, time.Millisecond)
	s.hear(tokenEvent)
	v := s.after(0)
	require.LessOrEqual(t, v.LastToken, engines.Now())
}

// Listing models, counting tokens and the like shows nothing, whether it is answered or not.
func TestEngine_OnlyRequestsToModelsCount(t *testing.T) {
	s := startScripted(t)
	s.produce()
	s.send("/v1/messages/count_tokens", `{"stream":true}`)
	s.send("/tokenize", `{"stream":true}`)
	s.requireVerdict(time.Hour, liveness.Idle, liveness.None)
	for range 2 {
		s.say <- "{}"
		s.say <- ""
	}
	s.open(chatPath, chatRequest)
	s.requireVerdict(time.Hour, liveness.Stuck, liveness.NoToken)
}

func TestEngine_AllUpstreamsAreListedBeforeTheirFirstRequest(t *testing.T) {
	change := func(cfg *Config) {
		cfg.Upstream.Endpoint = "http://LLM.example/base"
		for _, endpoint := range []string{"https://llm.example", "http://llm.example:8000", "http://[::1]:8000", "http://llm.example:8000/other"} {
			cfg.Routes = append(cfg.Routes, RouteConfig{Prefix: "/" + string(rune('a'+len(cfg.Routes))), Upstream: cfg.Upstream})
			cfg.Routes[len(cfg.Routes)-1].Upstream.Endpoint = endpoint
		}
	}
	names := func(p *tap) (all []string) {
		p.receiver.engines.Judge(engines.Now(), func(liveness.State, liveness.Status) {})
		for _, s := range p.receiver.engines.Statuses() {
			all = append(all, s.Engine)
		}
		return all
	}
	p := startAt(t, consumertest.NewNop(), withLiveness, change)
	require.Equal(t, []string{"LLM.example:80", "[::1]:8000", "llm.example:443", "llm.example:8000"}, names(p))
	require.Zero(t, p.counter("engines_unjudged"))

	p = startAt(t, consumertest.NewNop(), withLiveness, change, func(cfg *Config) { cfg.Liveness.Get().Engines.MaxEngines = 2 })
	require.Len(t, names(p), 2)
	require.Equal(t, map[string]int64{"max_engines": 2}, p.counterBy("limit", "engines_unjudged"))
}

func TestEngine_IsNotJudgedWithoutLiveness(t *testing.T) {
	p := start(t, answerChat)
	_, answer := p.post(chatPath, chatRequest)
	require.Equal(t, chatAnswer(3), answer)
	require.Nil(t, p.receiver.engines)
	require.Nil(t, p.receiver.routes[0].engine)
}

func TestEngine_DownIfConnectionsFail(t *testing.T) {
	for name, handle := range map[string]func(net.Conn){
		"reset": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"closed": func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_ = c.Close()
		},
		"refused": nil,
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			if handle == nil {
				_ = listener.Close()
			}
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					handle(c)
				}
			}()
			p := startAt(t, consumertest.NewNop(), withLiveness, func(cfg *Config) { cfg.Upstream.Endpoint = "http://" + listener.Addr().String() })
			for range 2 {
				response, _ := p.post(chatPath, chatRequest)
				require.Equal(t, http.StatusBadGateway, response.StatusCode)
			}
			p.requireVerdict(0, liveness.Unknown, liveness.NeverToken)
			p.post(chatPath, chatRequest)
			require.Eventually(t, func() bool { return p.after(0).State == liveness.Down }, time.Minute, time.Millisecond)
			p.requireVerdict(0, liveness.Down, liveness.Refused)
		})
	}
}

// These say nothing of the engine.
func TestEngine_MistakesOfTheConfigurationAreNotDown(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(answerChat))
	defer plain.Close()
	untrusted := httptest.NewTLSServer(http.HandlerFunc(answerChat))
	defer untrusted.Close()
	for name, endpoint := range map[string]string{
		"unknown host":          "http://no-such-host.invalid",
		"no TLS":                strings.Replace(plain.URL, "http:", "https:", 1),
		"untrusted certificate": untrusted.URL,
		"no HTTP":               strings.Replace(untrusted.URL, "https:", "http:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			p := startAt(t, new(consumertest.TracesSink), withLiveness, func(cfg *Config) { cfg.Upstream.Endpoint = endpoint })
			for range 5 {
				_ = p.open(chatPath, chatRequest).Body.Close()
			}
			p.spansAfter(5)
			p.requireVerdict(0, liveness.Unknown, liveness.NeverToken)
		})
	}
}

func TestEngine_DownIfSeveralClientsGetOnlyErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		tenants []string
		state   liveness.State
	}{
		"several clients":  {500, []string{"a", "b", "a"}, liveness.Down},
		"overload only":    {503, []string{"a", "b", "a"}, liveness.Down},
		"one client":       {500, []string{"a", "a", "a", "a"}, liveness.Unknown},
		"refused requests": {429, []string{"a", "b", "a"}, liveness.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(c.status)
			}, withLiveness, func(cfg *Config) { cfg.AttributesFromHeaders = map[string]string{"x-tenant": tenantAttribute} })
			for _, tenant := range c.tenants {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+chatPath, strings.NewReader(chatRequest))
				require.NoError(t, err)
				request.Header.Set("X-Tenant", tenant)
				response, err := client(t).Do(request)
				require.NoError(t, err)
				_ = response.Body.Close()
			}
			p.spansAfter(len(c.tenants))
			require.Equal(t, c.state, p.after(0).State)
		})
	}
}

func TestEngineName_HasThePort(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://localhost:8000/v1": "localhost:8000", "https://api.example": "api.example:443", "http://api.example/": "api.example:80", "http://[::1]": "[::1]:80",
	} {
		u, err := url.Parse(endpoint)
		require.NoError(t, err)
		require.Equal(t, want, engineName(u))
	}
}
