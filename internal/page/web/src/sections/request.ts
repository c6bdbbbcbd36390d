// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {ApiError, type Maybe, type RequestDetail, type RequestNumbers, type Strip, read} from '../api';
import {LineChart} from '../charts/lines';
import {isOpen, stripCanvas} from '../charts/strip';
import {copyButton} from '../controls';
import {type Child, h} from '../dom';
import {notice} from '../section';
import {dimensionName, isolated, valueName} from '../terms';
import {about, count, duration, roundDuration, missing, pace, time} from '../units';
import type {View} from '../view';
import {because} from './slowest';

/** Returns the page of one request. */
export async function requestPage(view: View, id: string, withoutStrip: string): Promise<HTMLElement> {
  const back = h('a', {class: 'button back', href: view.href('request', ''), onclick: event => { event.preventDefault(); view.set({request: ''}); }}, '← All requests');
  try {
    const {request, strip} = await read<RequestDetail>(`requests/${encodeURIComponent(id)}`);
    return h('section', {id: 'request', 'aria-labelledby': 'request-title'}, back, ...content(request, strip, withoutStrip));
  } catch (error) {
    const [what, todo] = error instanceof ApiError ? [error.message, `${error.remedy}.`] : ['The Collector does not answer', 'The page tries again when the connection is back.'];
    return h('section', {id: 'request'}, back, notice(what, todo));
  }
}

function content(request: RequestNumbers, strip: Strip | null, withoutStrip: string): Child[] {
  const fact = (name: string, value: string): Child => h('div', {}, h('dt', {}, name), h('dd', {}, value));
  const model = request.dimensions['gen_ai.request.model'] ?? 'Request';
  const seconds = (name: string, value: Maybe, format = duration): string => about(format(value), request.estimated.includes(name));
  return [
    h('div', {class: 'heading'}, h('h2', {id: 'request-title', tabindex: -1}, `${isolated(valueName(model))}, ${time(request.time)}`),
      h('p', {}, h('span', {class: 'tags'}, ...because(request)))),
    h('div', {class: 'card'}, h('dl', {class: 'facts'},
      fact('Duration', seconds('request.duration', request.request_duration)),
      fact('TTFT', seconds('time_to_first_token', request.time_to_first_token)), fact('TPOT', seconds('time_per_output_token', request.time_per_output_token, pace)),
      ...request.time_per_token.map(({position, mean}) => fact(`Per token, ${position.replace('-', ' to ').replace('+', ' and more')}`, pace(mean))),
      ...(['network', 'queue', 'prefill', 'transfer', 'decode'] as const).map(phase => fact(phase.charAt(0).toUpperCase() + phase.slice(1), seconds(`${phase}.duration`, request[phase]))),
      fact('Longest gap', request.open_tail ? `${duration(request.largest_gap)}, at the end` : duration(request.largest_gap)),
      fact('Stalls', request.stalls ? `${count(request.stalls)}, ${duration(request.stall_duration)}` : count(request.stalls)),
      fact('Input tokens', request.cached_input_tokens ? `${count(request.input_tokens)} (${count(request.cached_input_tokens)} cached)` : count(request.input_tokens)),
      fact('Output tokens', count(request.output_tokens)),
      fact('SLOs breached', request.slos_breached.join(', ') || 'none'))),
    h('div', {class: 'card bigstrip'}, h('div', {class: 'title'}, h('h3', {}, 'Chunks'),
      h('span', {class: 'muted'}, strip ? `${count(strip.at.length)} chunks${strip.dropped ? `, ${count(strip.dropped)} more left out` : ''} · queue, prefill, then one tick for each chunk; hatched: stalls, and the wait at the end of a request that failed or has no end`
        : withoutStrip)),
    stripCanvas(request, strip, (request.request_duration ?? strip?.at.at(-1) ?? 1) * (isOpen(request) ? 1.1 : 1))),
    strip && strip.at.length > 1 && gaps(strip),
    h('div', {class: 'card'}, h('dl', {class: 'facts text'},
      fact('trace id', request.trace_id ?? missing), fact('span id', request.span_id ?? missing),
      fact('vantage', request.vantage), fact('outcome', request.outcome), fact('error type', request.error_type ?? missing), fact('HTTP status', request.status ?? missing),
      fact('replica', request.replica ?? missing), fact('source', request.source ?? missing), fact('estimates (≈)', request.estimated.join(', ') || 'none'),
      ...Object.entries(request.dimensions).map(([name, value]) => fact(dimensionName(name), valueName(value)))),
    h('p', {class: 'caption'}, request.trace_id && copyButton(() => request.trace_id ?? '', 'Copy trace id'), ' ',
      request.trace_link && /^https?:/.test(request.trace_link) && h('a', {class: 'button', href: request.trace_link, target: '_blank', rel: 'noopener'}, 'Open the trace'))),
  ];
}

/** The gap before each chunk: where a request lost its time. */
function gaps(strip: Strip): HTMLElement {
  const caption = h('p', {class: 'caption'}, 'The gap before each chunk, over the time since the start of the request.');
  const x = strip.at.slice(1);
  const values = x.map((at, i) => at - (strip.at[i] ?? 0));
  const chart = new LineChart({label: 'Gap before each chunk', x: {tick: roundDuration}, onCursor: index => {
    if (index === null) return;
    const tokens = strip.tokens[index + 1] ?? 0;
    caption.textContent = `chunk ${index + 2} at ${duration(x[index])}: gap ${duration(values[index])}, ${count(tokens)} ${tokens === 1 ? 'token' : 'tokens'}, ${strip.channels[index + 1] ?? ''}`;
  }});
  chart.update(x, [{name: 'gap', color: '--series-1', width: 1.2, stepped: -1, values}], {scale: ''});
  return h('figure', {class: 'card chart'}, h('figcaption', {class: 'title'}, h('h3', {}, 'Gaps between chunks')), chart.element, caption);
}
