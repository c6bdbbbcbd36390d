// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {h} from './dom';
import {duration, pace, roundDuration, roundNumber} from './units';

export const docs = 'https://github.com/tokenpulse/tokenpulse/blob/main';

/** The terms of docs/definitions.md, with one sentence each. */
const terms = {
  time_to_first_token: ['Time to first token', 'TTFT', 'First token minus start of the request.'],
  time_per_output_token: ['Time per output token', 'TPOT', '(last token - first token) / (output tokens - 1), one value per request. The second number is 1 / TPOT, in output tokens per second.'],
  inter_token_latency: ['Inter-token latency', 'ITL', 'Gap before a chunk / its tokens, one value per token.'],
  request_duration: ['Request duration', 'E2E', 'End minus start of the request.'],
} as const;

/** Further terms of the page, which the list at its end explains. */
const more = [
  ['Network, queue, prefill, transfer, decode', 'Time to the engine; until the engine schedules the request; until the first token; from the engine of the prefill to that of the decode, if they are two; from the first to the last token.'],
  ['Stall', 'A gap between chunks longer than stall_threshold.'],
  ['In flight', 'Durations of the requests that ended, divided by the window: Little\'s law.'],
  ['Unmeasured', 'Requests without TTFT or TPOT / requests of all outcomes.'],
  ['Attainment', 'Good requests / (good + bad requests). Requests that an SLO does not apply to are neither.'],
  ['Burn rate', 'Share of bad requests / (1 - objective), over a window.'],
  ['Budget left', '1 - bad requests / ((1 - objective) x judged requests), over the window of the objective.'],
  ['Estimate (≈)', 'A number that the span does not have, derived from others, or a bound.'],
] as const;

/** Returns the formulas, which need no network. */
export function formulas(): HTMLElement {
  const rows = [...Object.entries(terms).map(([id, [name, abbreviation, formula]]) => [`${name} (${abbreviation})`, formula, id] as const), ...more];
  return h('section', {id: 'terms', 'aria-labelledby': 'terms-title'}, h('div', {class: 'heading'}, h('h2', {id: 'terms-title'}, 'What each number means')),
    h('dl', {class: 'card facts text'}, ...rows.map(([name, formula, id]) => h('div', id ? {id: `term-${id}`} : {}, h('dt', {}, name), h('dd', {}, formula)))));
}

export type Term = keyof typeof terms;

export const short = (term: Term): string => terms[term][1];
export const long = (term: Term): string => terms[term][0];

/** Formats a value of a term. */
export const valueOf = (term: Term, seconds: number | null | undefined): string => (term === 'time_per_output_token' ? pace : duration)(seconds);

/** Returns the name of a term as a link to its definition, with the formula as its title. */
export function termLink(term: Term): HTMLElement {
  const [name, , formula] = terms[term];
  return h('a', {class: 'term', href: `#term-${term}`, title: formula}, name);
}

/** Returns an SLO's rule, such as "Time to first token ≤ 1 s". Counts and shares have no unit. */
export function rule(indicator: string, threshold: number): string {
  const name = indicator.replaceAll('.', '_');
  const inSeconds = /duration|latency|time/.test(name);
  const speed = name === 'time_per_output_token' && threshold > 0 ? ` · ≥ ${roundNumber(1 / threshold)} tok/s` : '';
  return `${name in terms ? long(name as Term) : indicator} ≤ ${inSeconds ? roundDuration(threshold) : threshold}${speed}`;
}

const reasons: Record<string, string> = {
  implausible: 'implausible: negative, or longer than the request',
  no_token: 'no token',
  ambiguous_unit: 'a time of an unknown unit',
  not_streamed: 'not streamed',
  not_read: 'a timing that is not read',
  not_reported: 'first token not reported',
  dropped_events: 'events dropped',
  buffered: 'buffered between engine and observer',
  one_token: 'one-token answer',
  unread: 'no reason: no token_latency processor read the span',
};

export const reason = (name: string): string => reasons[name] ?? name;

/** Stands for the groups that a chart leaves out. No label value contains its first character. */
export const others = '\u0000others';

const placeholders: Record<string, string> = {'': '(not set)', [others]: 'all others', 'otel.metric.overflow': 'beyond max_series'};

/** Returns a value of a dimension, or a placeholder for one that is no value of a request. */
export const valueName = (value: string): string => placeholders[value] ?? value;

/** Keeps a name apart from the text around it, whatever direction it is written in. */
export const isolated = (name: string): string => `\u2068${name}\u2069`;

/** Returns what a dimension is called on the page: the last parts of its name. */
export function dimensionName(name: string): string {
  const known: Record<string, string> = {
    'gen_ai.request.model': 'model', 'gen_ai.response.model': 'response model', 'gen_ai.provider.name': 'provider',
    'gen_ai.operation.name': 'operation', 'service.name': 'service', 'service.version': 'version', 'host.name': 'host',
    'deployment.environment.name': 'environment', 'service.instance.id': 'instance', 'k8s.pod.name': 'pod', 'server.address': 'server',
    'tokenpulse.cold': 'cold start',
  };
  return known[name] ?? name;
}
