// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Now, Rates, SLO, SLONow} from '../api';
import {sparkline} from '../charts/sparkline';
import {type Child, fill, h, setText} from '../dom';
import {type IconName, icon} from '../icons';
import {frame} from '../section';
import {reason, rule, short, type Term} from '../terms';
import {amount, count, digits, duration, missing, percent} from '../units';

/** The tiles: rates, load, what could not be measured, and one card for each SLO. */
export class NowSection {
  private tiles = {
    requests: tile('Requests', '/s'),
    tokens: tile('Output tokens', '/s'),
    flight: tile('In flight', 'mean', 'Mean number of requests in flight over the last minute, by Little\'s law'),
    open: tile('Open streams', '', 'Streams that have begun and not ended, of the token_stream and token_tap receivers in this Collector'),
    stalls: tile('Stalls', '', 'Gaps between chunks longer than stall_threshold'),
    failed: tile('Not successful', '', 'Requests that failed, were cancelled, or have no end'),
    unmeasured: tile('Unmeasured', '', 'Share of requests without TTFT, or without TPOT: the larger of the two'),
  };
  private slos = h('div', {class: 'slos'});
  private slosKey = '';
  readonly element = frame('now', 'Now', 'Rates of the last minute; shares and SLOs over the selected range.', [],
    h('dl', {class: 'tiles'}, ...Object.values(this.tiles).map(({element}) => element)), this.slos);

  /** Reserves the room of the cards before their numbers arrive. */
  reserve(slos: SLO[]): void {
    if (this.slosKey === '') fill(this.slos, ...slos.map(slo => card({...slo, good: 0, bad: 0, not_eligible: 0, attainment: null, burn_rates: [], budget_remaining: null, budget_window_seconds: slo.window_seconds})));
  }

  update(now: Now): void {
    const {requests, tokens, flight, open, stalls, failed, unmeasured} = this.tiles;
    requests.set(amount(now.requests_per_second));
    tokens.set(amount(now.output_tokens_per_second));
    flight.set(amount(now.in_flight));
    open.element.hidden = now.open_streams === null;
    open.set(count(now.open_streams));
    open.note('now, without filters');
    stalls.set(count(now.stalls.count));
    stalls.note(now.stalls.count > 0 ? `${duration(now.stalls.seconds)} in total` : '');
    const total = Object.values(now.requests).reduce((a, b) => a + b, 0);
    const bad = total - (now.requests.success ?? 0);
    failed.set(total ? percent(bad / total) : missing);
    failed.note(['error', 'cancelled', 'incomplete'].filter(name => now.requests[name]).map(name => `${count(now.requests[name])} ${name}`).join(' · ') || `none of ${count(total)}`);
    const byIndicator = new Map<string, number>();
    for (const {indicator, share} of now.unmeasured) byIndicator.set(indicator, (byIndicator.get(indicator) ?? 0) + share);
    unmeasured.set(total ? percent(Math.max(0, ...byIndicator.values())) : missing);
    unmeasured.note(now.unmeasured.slice(0, 2).map(entry => `${short(entry.indicator as Term)}: ${reason(entry.reason)} (${percent(entry.share)})`).join(' · ') || 'every request has TTFT and TPOT');
    this.updateSLOs(now);
  }

  sparklines(total: Rates | undefined): void {
    if (!total) return;
    this.tiles.requests.spark.update(total.requests_per_second);
    this.tiles.tokens.spark.update(total.output_tokens_per_second);
    this.tiles.flight.spark.update(total.in_flight);
  }

  private updateSLOs({slos}: Now): void {
    const key = JSON.stringify(slos);
    if (key === this.slosKey) return;
    this.slosKey = key;
    fill(this.slos, ...slos.map(card));
    if (slos.length > 0) return;
    fill(this.slos, h('p', {class: 'card muted'}, 'No SLO yet. Add ', h('code', {}, 'slos'), ' to token_latency and ', h('code', {}, 'objectives'),
      ' to token_sli: attainment, burn rate and error budget then appear here.'));
  }
}

function tile(name: string, unit: string, title?: string) {
  const value = h('span', {}, missing);
  const note = h('dd', {class: 'note'});
  const spark = sparkline();
  const bottom = unit ? h('dd', {}, spark.element) : note;
  const element = h('div', {class: 'card tile', ...(title ? {title} : {})},
    h('dt', {}, name), h('dd', {class: 'value'}, value, unit && h('small', {}, unit)), bottom);
  return {element, spark, set: (text: string) => setText(value, text), note: (text: string) => { setText(note, text); note.title = text; }};
}

type Level = 'good' | 'warn' | 'bad' | 'none';

/** A verdict has a word and an icon beside its colour. */
function verdict(slo: SLONow): {level: Level; word: string; icon: IconName} {
  if (slo.attainment === null) return {level: 'none', word: 'No verdict', icon: 'minus'};
  if (slo.objective === null) return {level: 'none', word: 'No objective', icon: 'minus'};
  if (slo.budget_remaining !== null && slo.budget_remaining < 0) return {level: 'bad', word: 'Budget spent', icon: 'cross'};
  if (slo.attainment < slo.objective) return {level: 'warn', word: 'Below objective', icon: 'warning'};
  return {level: 'good', word: 'Met', icon: 'check'};
}

function card(slo: SLONow): HTMLElement {
  const {level, word, icon: name} = verdict(slo);
  const shortest = [...slo.burn_rates].sort((a, b) => a.window_seconds - b.window_seconds);
  const burn = shortest.find(({rate}) => rate !== null);
  const left = slo.budget_remaining;
  const fact = (label: string, value: string, title: string, unit = ''): Child => h('div', {title}, h('dt', {}, label), h('dd', {}, value, unit && h('small', {}, unit)));
  const bar = h('span');
  bar.style.width = `${Math.max(0, Math.min(1, left ?? 0)) * 100}%`;
  const text = slo.indicator === null || slo.threshold === null
    ? slo.slo === 'all' ? 'every SLO that applies to the request' : slo.indicator === 'outcome' ? 'the request succeeds' : 'no single definition in this Collector: threshold appears after the first breach'
    : rule(slo.indicator, slo.threshold);
  return h('div', {class: 'card slo'},
    h('div', {class: 'name'}, h('span', {title: slo.slo}, slo.slo), h('span', {class: 'verdict', 'data-level': level}, icon(name), word)),
    h('dl', {},
      fact('Attainment', percent(slo.attainment), `${count(slo.good)} good, ${count(slo.bad)} bad, ${count(slo.not_eligible)} not eligible over the range`),
      fact('Burn rate', burn?.rate == null ? missing : `${digits(burn.rate, 2)}×`, shortest.map(({window_seconds, rate}) => `${window(window_seconds)}: ${rate === null ? missing : digits(rate, 2)}×`).join('\n'), burn && window(burn.window_seconds)),
      fact('Budget left', percent(left), slo.budget_window_seconds ? `Error budget of ${window(slo.budget_window_seconds)}` : 'No objective, no budget')),
    h('div', {class: 'meter', 'data-level': level, 'aria-hidden': 'true'}, left !== null && bar),
    h('p', {class: 'rule'}, text, slo.objective !== null && ` · objective ${percent(slo.objective)}`));
}

function window(seconds: number): string {
  if (seconds % 86400 === 0) return `${seconds / 86400}d`;
  return seconds % 3600 === 0 ? `${seconds / 3600}h` : `${Math.round(seconds / 60)}m`;
}
