// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Meta, type RequestDetail, type RequestNumbers, type Requests, type Strip, read} from '../api';
import {stripCanvas} from '../charts/strip';
import {segments} from '../controls';
import {fill, h} from '../dom';
import {splitBy} from '../groups';
import {offers, report} from '../report';
import {type Section, frame, notice} from '../section';
import {dimensionName, valueName, valueOf} from '../terms';
import {about, count, duration, time} from '../units';
import type {View} from '../view';

const ranks = [
  {value: 'request_duration', name: 'duration'}, {value: 'time_to_first_token', name: 'TTFT'}, {value: 'time_per_output_token', name: 'TPOT'},
];
const shown = 12;
const model = 'gen_ai.request.model';

/** The slowest requests, each with its strip of chunks and a page of its own. */
export class SlowestSection implements Section {
  private strips = new Map<string, Strip | null>(); // a finished request does not change
  private drawn = '';
  private head = h('tr');
  private body = h('tbody');
  private hint = h('div');
  private choice = segments('Rank by', ranks, () => this.view.get('slowest') || 'request_duration', value => this.view.set({slowest: value === 'request_duration' ? '' : value}), value => offers('requests', this.question(value)));
  readonly element = frame('slowest', 'Slowest requests', 'Each tick is a chunk. Before it: queue and prefill. Hatched: a stall, or the wait at the end of a request that failed or has no end.', [this.choice.element],
    h('div', {class: 'card scroll', tabindex: 0, role: 'region', 'aria-label': 'Slowest requests'}, h('table', {class: 'requests'},
      h('thead', {}, this.head), this.body), this.hint));

  constructor(private view: View, private meta: () => Meta) {}

  private question(rank: string): URLSearchParams { return this.view.query({slowest: rank === 'request_duration' ? '' : rank, limit: String(shown)}); }

  async load(signal: AbortSignal): Promise<void> {
    const {requests} = await read<Requests>('requests', this.question(this.view.get('slowest')), signal);
    this.choice.update();
    for (const {id, has_strip: has} of requests) {
      if (!has || this.strips.has(id) || !offers(`requests/${encodeURIComponent(id)}`)) continue;
      this.strips.set(id, (await read<RequestDetail>(`requests/${encodeURIComponent(id)}`, undefined, signal)).strip);
    }
    const by = splitBy(this.view, this.meta());
    const key = [by, ...requests.map(({id}) => id)].join();
    if (key === this.drawn) return;
    this.drawn = key;
    for (const id of this.strips.keys()) if (!requests.some(request => request.id === id)) this.strips.delete(id);
    const span = Math.max(...requests.map(request => request.request_duration ?? 0));
    const extra = by === model ? [] : [by];
    fill(this.head, ...['Ended', 'Model', ...extra.map(dimensionName)].map(name => h('th', {scope: 'col'}, name)),
      ...['TTFT', 'TPOT', 'Duration', 'Tokens'].map(name => h('th', {scope: 'col', class: 'number'}, name)), ...['Because of', 'Chunks'].map(name => h('th', {scope: 'col'}, name)));
    fill(this.body, ...requests.map(request => this.row(request, extra, span)));
    fill(this.hint, requests.length === 0 && notice('No request in this range', this.view.ended ? 'Clear the filters.' : 'Send one, or widen the range or the filters.'),
      requests.length > 0 && this.meta().timelines.kept === false && h('p', {class: 'caption'}, withoutStrip(this.meta())));
  }

  private row(request: RequestNumbers, extra: string[], span: number): HTMLElement {
    const names = [request.dimensions[model] ?? Object.values(request.dimensions)[0] ?? '', ...extra.map(by => groupOf(request, by))].map(valueName);
    const small = [request.replica, request.source].filter(Boolean).join(' · ');
    return h('tr', {},
      h('td', {}, offers(`requests/${encodeURIComponent(request.id)}`) ? h('a', {href: this.view.href('request', request.id), 'data-request': request.id, onclick: event => this.open(event, request.id)}, time(request.time)) : time(request.time)),
      ...names.map((name, i) => h('td', {class: 'model', title: name}, h('bdi', {}, name), i === 0 && h('small', {title: small}, small))),
      ...(['time_to_first_token', 'time_per_output_token', 'request_duration'] as const).map(name => {
        const estimated = request.estimated.includes(name.replace('request_', 'request.'));
        return h('td', {class: 'number', ...(estimated ? {title: 'an estimate or a bound'} : {})}, about(valueOf(name, request[name]), estimated));
      }),
      h('td', {class: 'number'}, count(request.output_tokens)),
      h('td', {}, h('span', {class: 'tags'}, ...because(request))),
      h('td', {class: 'strip'}, stripCanvas(request, this.strips.get(request.id) ?? null, span)));
  }

  private open(event: Event, id: string): void {
    const {ctrlKey, metaKey, shiftKey} = event as MouseEvent;
    if (ctrlKey || metaKey || shiftKey) return;
    event.preventDefault();
    this.view.set({request: id});
  }
}

/** Says why a request has no strip. */
export const withoutStrip = ({timelines: {setting}}: Meta): string => `Chunks are not shown because requests carry no timelines${report ? '' : `: ${setting.replaceAll('`', '')}`}.`;

const groupOf = (request: RequestNumbers, by: string): string => (by === 'vantage' || by === 'outcome' ? request[by] : request.dimensions[by] ?? '');

/** Returns what made a request slow, as words. */
export function because(request: RequestNumbers): HTMLElement[] {
  const tags: HTMLElement[] = [];
  for (const text of [request.outcome === 'success' ? null : request.outcome, request.error_type, request.status === '200' ? null : request.status]) {
    if (text && !tags.some(tag => tag.textContent === text)) tags.push(h('span', {class: 'tag bad'}, text));
  }
  if (request.reason && !(request.reason === 'stalls' && request.stalls)) tags.push(h('span', {class: 'tag'}, request.reason));
  if (request.stalls) tags.push(h('span', {class: 'tag bad', title: `${duration(request.stall_duration)} in total`}, `${count(request.stalls)} ${request.stalls === 1 ? 'stall' : 'stalls'}`));
  if (request.open_tail) tags.push(h('span', {class: 'tag bad', title: 'From the last token, or the start, to the end'}, `no token for ${duration(request.open_tail)}`));
  return tags;
}
