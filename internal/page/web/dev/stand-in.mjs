// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// A stand-in for the Collector while the page is developed: serves ../assets and made-up
// numbers in the shapes of openapi.yaml. Not shipped, and no test relies on it.
//   node dev/stand-in.mjs [port] [empty]
import {createServer} from 'node:http';
import {readFile} from 'node:fs/promises';

const port = Number(process.argv[2] ?? 9474);
const empty = process.argv[3] === 'empty';
const model = 'gen_ai.request.model';
const models = [['llama-3.1-8b', 3], ['gpt-oss-120b', 1.6], ['llama-3.3-70b', 1]];
const ranges = {'5m': [300, 5], '1h': [3600, 60], '24h': [86400, 900], '7d': [604800, 7200]};
const noise = i => { const x = Math.sin(i * 127.1) * 43758.5453; return x - Math.floor(x); };
const indicators = {time_to_first_token: 0.28, time_per_output_token: 0.021, inter_token_latency: 0.0215, request_duration: 7};
const phases = {network: 0.012, queue: 0.09, prefill: 0.25, transfer: 0.03, decode: 6};
const summary = (base, count = 500) => ({count, mean: base * 1.15, min: base / 4, max: base * 9, p50: base, p95: base * 2.4, p99: base * 4.1});
const withCDF = base => {
  const at = Array.from({length: 60}, (_, i) => base / 4 * 36 ** (i / 59));
  return {...summary(base), cdf: {at, share: at.map(value => 1 / (1 + (value / base) ** -3)).map((share, i) => (i === 59 ? 1 : share))}};
};
const times = ([length, step]) => Array.from({length: length / step}, (_, i) => Math.floor(Date.now() / 1000 / step) * step - length + (i + 1) * step);
const slos = [
  {slo: 'all', objective: 0.9, indicator: null, threshold: null, window_seconds: 2592000},
  {slo: 'chat-ttft', objective: 0.95, indicator: 'time_to_first_token', threshold: 1, window_seconds: 2592000},
  {slo: 'chat-tpot', objective: 0.99, indicator: 'time_per_output_token', threshold: 0.05, window_seconds: 2592000},
];
const slot = i => {
  const stalls = noise(i) > 0.8 ? 0.12 : 0.03;
  return Array.from({length: 40}, (_, row) => Math.round(900 * Math.exp(-((row - 14 - 2 * noise(i)) ** 2) / 9) + 40 * stalls * Math.exp(-((row - 33) ** 2) / 4) + (i % 7 === 0 ? 30 * Math.exp(-((row - 25) ** 2) / 2) : 0)));
};
const request = i => ({
  id: `r${i}`, time: Date.now() / 1000 - 17 * i, dimensions: {'service.name': 'chat', 'gen_ai.provider.name': 'vllm', [model]: models[i % 3][0], 'gen_ai.operation.name': 'chat'},
  vantage: 'server', outcome: i === 3 ? 'error' : 'success', trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', span_id: '00f067aa0ba902b7', trace_link: 'https://jaeger.example/trace/4bf92f3577b34da6a3ce929d0e0e4736',
  reason: ['decode', 'stalls', 'prefill', 'queue'][i % 4], request_duration: 22 - i, time_to_first_token: 0.4 + i % 4, time_per_output_token: 0.04, queue: 0.1 + i % 4 / 2, prefill: 0.3 + i % 4 / 2, decode: 20 - i, network: 0.01, transfer: null,
  input_tokens: 812, cached_input_tokens: 256, output_tokens: 400, stalls: i % 4 === 1 ? 2 : 0, stall_duration: i % 4 === 1 ? 2.9 : 0, largest_gap: i === 3 ? 8 : 1.8, open_tail: i === 3 ? 8 : null, slos_breached: ['chat-ttft'], has_strip: true,
  error_type: i === 3 ? 'timeout' : null, status: i === 3 ? '504' : '200', replica: `10.0.0.${i}:8000`, source: 'openllmetry', estimated: i % 2 ? ['time_to_first_token'] : [],
});
const strip = i => {
  const at = []; let t = 0.4 + i % 4;
  for (let n = 0; n < 400 && t < 21 - i; n++) { at.push(t); t += 0.02 + noise(n) * 0.04 + (i % 4 === 1 && (n === 90 || n === 200) ? 1.5 : 0); }
  return {at, tokens: at.map(() => 1), channels: at.map(() => 'content'), stalled: i % 4 === 1 ? [91, 201] : [], dropped: 0};
};
const now = range => ({
  time: Date.now() / 1000, range, from: Date.now() / 1000 - ranges[range][0], to: Date.now() / 1000, vantage: {shown: 'client', sum: false, requests: [{vantage: 'client', requests: 2306}, {vantage: 'server', requests: 2290}], doubts: []}, window_seconds: 60, requests_per_second: 7.9 + noise(Date.now()), output_tokens_per_second: 2412 + 200 * noise(Date.now() + 1), input_tokens_per_second: 5000, in_flight: 31.4, open_streams: 34, waiting_streams: 1, silent_streams: 1, longest_silent: [{dimensions: {[model]: models[0][0], 'service.name': 'chat'}, model: models[0][0], replica: '10.0.0.3:8000', vantage: 'client', phase: 'first_token', silent: 41, age: 41, tokens: 0}, {dimensions: {[model]: models[0][0], 'service.name': 'chat'}, model: models[0][0], replica: '10.0.0.3:8000', vantage: 'client', phase: 'decode', silent: 22, age: 30, tokens: 812}],
  engines: [['10.0.0.3:8000', 'stuck', 'no token for 41s, though open requests explain at most 7.2s', 12], ['10.0.0.4:8000', 'producing', 'tokens arrive', 22]].map(([engine, state, reason, open], i) => ({engine, state, reason, since: Date.now() / 1000 - 41 - 900 * i, open, last_token_age: i ? 0.02 : 41, bound: i ? 6.1 : 7.2})), engines_total: 2,
  requests: {success: 2201, error: 44, cancelled: 61, incomplete: 0}, failed: {client: 9, rate_limit: 0, server: 35, other: 0}, tokens: {input: 1e6, output: 7e5, reasoning: 1e5, cached_input: 2e5, cache_write: 1e5}, stalls: {count: 12, seconds: 13.4},
  unmeasured: [{indicator: 'time_per_output_token', reason: 'one_token', requests: 44, share: 0.018}, {indicator: 'time_to_first_token', reason: 'no_token', requests: 20, share: 0.008}], indicators: {},
  slos: slos.map((slo, i) => ({...slo, vantage: 'client', good: 2100 - 90 * i, bad: 20 + 60 * i, not_eligible: 40, judged: 0.97, attainment: [0.93, 0.962, 0.981][i], burn_rates: [{window_seconds: 300, rate: [0.7, 0.76, 1.9][i]}, {window_seconds: 3600, rate: 0.8}], budget_remaining: [0.41, 0.77, -0.12][i], budget_window_seconds: 2592000})),
  series: {held: 3, limit: 2000},
  doubts: [{message: 'no request has this dimension; check its spelling in `dimensions`, and that the senders set the attribute', about: 'replcia', since: Date.now() / 1000}],
});
const answers = {
  meta: () => ({version: '0.1.0', time: Date.now() / 1000, dimensions: [{name: 'service.name', values: ['chat', 'search'], more: 0}, {name: 'gen_ai.provider.name', values: ['vllm'], more: 0}, {name: model, values: models.map(([name]) => name), more: 0}, {name: 'gen_ai.operation.name', values: ['chat'], more: 0}],
    engines_total: 2, vantages: ['client', 'server'], outcomes: ['success', 'error', 'cancelled', 'incomplete'], group_by: model, split_by: model, slos, series: {held: 3, limit: 2000}, history: {since: empty ? null : 1, memory_bytes: 1e6, max_memory_bytes: 6e7, coarsened: false},
    pairs: [], timelines: {kept: true, setting: 'token_latency: {timeline: keep}'}, trace_link: null, endpoints: [{receiver: 'token_stream', url: 'http://0.0.0.0:4319/v1/tokens', auth: false}, {receiver: 'token_tap', url: 'http://localhost:4321/openai/v1/chat/completions', auth: true}]}),
  now: ({range}) => now(range),
  worst: ({range}) => ({range, indicators: {time_to_first_token: {by: model, value: models[2][0], requests: 700, p95: 1.9}}, slos: {'chat-ttft': {by: model, value: models[2][0], requests: 700, attainment: 0.81}}}),
  trends: ({range}) => {
    const at = times(ranges[range]);
    const line = (base, m) => at.map(t => base * (0.85 + 0.3 * noise(t + m) + 0.25 * Math.sin(t / 80 + m)));
    return {range, step_seconds: ranges[range][1], times: at, by: model, groups_total: 3, others: null, total: {requests_per_second: line(8, 5), output_tokens_per_second: line(2400, 6), in_flight: line(31, 7)},
      groups: models.map(([value, speed], m) => ({value, requests: 700, requests_per_second: line(3, m), output_tokens_per_second: line(900, m), in_flight: line(9, m), indicators: Object.fromEntries(Object.entries(indicators).map(([name, base]) => [name, {p50: line(base / speed, m), p95: line(base / speed * 2.4, m), p99: line(base / speed * 4, m)}]))}))};
  },
  distributions: ({range, by}) => ({range, by: by ?? model, groups_total: 3, others: null, groups: models.map(([value, speed]) => ({value, requests: 700, output_tokens: 1e5, indicators: Object.fromEntries(Object.entries({...indicators, ...phases}).map(([name, base]) => [name, withCDF(base / speed)]))}))}),
  heatmap: ({range}) => ({range, step_seconds: ranges[range][1], times: times(ranges[range]), indicator: 'inter_token_latency', bounds: Array.from({length: 41}, (_, i) => 0.002 * 2 ** (i / 4)), counts: times(ranges[range]).map(t => slot(t / ranges[range][1]))}),
  load: ({range}) => {
    const points = Array.from({length: 9}, (_, i) => ({load: 3 + i * 6, from: i * 6, to: 6 + i * 6, slots: 9, requests: 100 + i, time_to_first_token: summary(0.2 + 0.002 * i ** 3), time_per_output_token: summary(0.011 + 0.0003 * i ** 2), slos: slos.map(({slo}) => ({slo, good: 90, bad: 10, attainment: 0.99 - 0.01 * i}))}));
    const curve = scale => ({points: points.map(point => ({...point, load: point.load * scale})), slos: [{slo: 'chat-tpot', objective: 0.99, largest_load: 21 * scale}, {slo: 'chat-ttft', objective: 0.95, largest_load: 33 * scale}]});
    return {range, slot_seconds: 5, in_flight: curve(1), output_tokens_per_second: curve(70)};
  },
  prompts: ({range}) => ({range, cached_from: null, buckets: Array.from({length: 8}, (_, i) => ({from_tokens: 64 * 2 ** i, to_tokens: 128 * 2 ** i - 1, uncached: summary(0.08 * 1.5 ** i, 90), cached: i > 1 ? summary(0.06 * 1.25 ** i, 40) : null, together: null, time_per_output_token: summary(0.02 * 1.05 ** i, 130)}))}),
  requests: ({range}) => ({range, slowest: 'request_duration', requests: Array.from({length: 12}, (_, i) => request(i))}),
};
const types = {html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', txt: 'text/plain'};
createServer(async ({url}, response) => {
  const {pathname, searchParams} = new URL(url, 'http://localhost');
  const query = {range: '5m', ...Object.fromEntries(searchParams)};
  response.setHeader('Content-Security-Policy', "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  const json = value => response.setHeader('Content-Type', 'application/json').end(JSON.stringify(value));
  const name = pathname.replace('/api/v1/', '');
  if (name === 'events') {
    response.setHeader('Content-Type', 'text/event-stream');
    const send = () => response.write(`event: now\ndata: ${JSON.stringify(now(query.range))}\n\n`);
    send();
    const timer = setInterval(send, 2000);
    response.on('close', () => clearInterval(timer));
  } else if (answers[name]) json(answers[name](query));
  else if (name.startsWith('requests/')) json({request: request(Number(name.slice(10))), strip: strip(Number(name.slice(10)))});
  else {
    const file = pathname === '/' ? 'index.html' : pathname.slice(1);
    try {
      response.setHeader('Content-Type', types[file.split('.').pop()]).end(await readFile(new URL(`../../assets/${file}`, import.meta.url)));
    } catch {
      response.writeHead(404).end();
    }
  }
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/`));
