// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Meta, type Standout, type Now, type Rates, type SLONow, type Worst, read} from '../api';
import {sparkline} from '../charts/sparkline';
import {type Child, fill, h, setText} from '../dom';
import {icon} from '../icons';
import {againstBudget, againstThresholds, byLevel, type Limited, slosOn, unlimited, verdict} from '../levels';
import {report} from '../report';
import {type Section, frame} from '../section';
import {dimensionName, long, reason, rule, short, type Term, valueName, valueOf} from '../terms';
import {Engines} from './engines';
import {SilentStreams} from './silent';
import {Vantages} from './vantages';
import {amount, count, digits, duration, missing, percent, plural, roundDuration, roundPercent, speed} from '../units';
import type {View} from '../view';

const headlines = ['time_to_first_token', 'time_per_output_token'] as const;

/** The tiles: latencies, rates, load, what could not be measured, and one card for each SLO. */
export class NowSection implements Section {
  private headlines = headlines.map(indicator => headline(indicator, this.view));
  private tiles = {
    requests: tile('Requests', '/s'),
    tokens: tile('Output tokens', '/s'),
    flight: tile('In flight', 'mean', 'Mean number of requests in flight over the time of the rates, by Little\'s law'),
    open: tile('Open streams', '', 'Streams that have begun, and neither ended nor expired, of the token_stream and token_tap receivers in this Collector. Filters on dimensions and vantage apply, that on outcome does not'),
    stalls: tile('Stalls', '', 'Gaps between chunks longer than stall_threshold'),
    failed: tile('Failed', '', 'Share of requests that failed or have no end. Client mistakes, such as a wrong API key, are not eligible for SLOs'),
    unmeasured: tile('Unmeasured', '', 'Share of requests without TTFT, or without TPOT: the larger of the two'),
  };
  private slos = h('div', {class: 'slos'});
  private cards = new Map<string, ReturnType<typeof card>>();
  private vantages = new Vantages(this.view);
  private engines = new Engines();
  private silent = new SilentStreams(this.view);
  private worst: Worst | null = null;
  private counted = h('span');
  readonly element = frame('now', report ? 'Summary' : 'Now', report ? this.counted : 'Rates of the last minute, or of a range that has ended; all else over the selected range.', [],
    this.vantages.element, h('dl', {class: 'tiles'}, ...this.headlines.map(({element}) => element), ...Object.values(this.tiles).map(({element}) => element)), this.engines.element, this.silent.element, this.slos);

  constructor(private view: View) {}

  /** Loads the groups that stand out, which take longer to find than the tiles. */
  async load(signal: AbortSignal): Promise<void> {
    this.worst = await read<Worst>('worst', this.view.query(), signal);
    this.showWorst();
  }

  private showWorst(): void {
    headlines.forEach((indicator, i) => {
      const group = this.worst?.indicators[indicator];
      this.headlines[i]?.name(group, group && `p95 ${valueOf(indicator, group.p95)}`);
    });
    for (const [name, card] of this.cards) {
      const group = this.worst?.slos[name];
      card.name(group, group && `attainment ${percent(group.attainment)}`);
    }
  }

  /** Reserves the room of the cards before their numbers arrive. */
  reserve({slos, engines_total: engines}: Meta): void {
    if (!this.view.ended) this.engines.reserve(engines);
    if (this.cards.size === 0) this.updateSLOs(slos.map(slo => ({...slo, vantage: '', good: 0, bad: 0, not_eligible: 0, judged: null, attainment: null, burn_rates: [], budget_remaining: null, budget_window_seconds: slo.window_seconds})));
  }

  update(now: Now): void {
    const {requests, tokens, flight, open, stalls, failed, unmeasured} = this.tiles;
    this.vantages.update(now.vantage);
    for (const tile of this.headlines) tile.set(now);
    requests.set(amount(now.requests_per_second));
    tokens.set(amount(now.output_tokens_per_second));
    flight.set(amount(now.in_flight));
    open.element.hidden = now.open_streams === null;
    open.set(count(now.open_streams));
    const hang = [[now.silent_streams, 'without a token for over 15 s'], [now.waiting_streams, 'waiting for the first token for over 15 s']] as const;
    open.note(hang.filter(([streams]) => streams).map(([streams, text]) => `${count(streams)} ${text}`).join(' · ') || 'none is silent for over 15 s');
    open.element.dataset.level = hang.some(([streams]) => streams) ? 'warn' : 'none';
    this.engines.update(now);
    this.silent.update(now);
    const gaps = now.stalls.count > 0 || now.indicators.inter_token_latency !== undefined;
    stalls.set(gaps ? count(now.stalls.count) : missing);
    stalls.note(now.stalls.count > 0 ? `${duration(now.stalls.seconds)} in total` : '');
    const total = Object.values(now.requests).reduce((a, b) => a + b, 0);
    const {success = 0, cancelled = 0} = now.requests;
    if (report) setText(this.counted, `${plural(total, 'request')} in ${plural(report.files, 'file')}.`);
    const [bad, mistakes] = [total - success - cancelled, now.failed.client ?? 0].map(requests => requests / (total || 1)) as [number, number];
    failed.set(total ? percent(bad) : missing);
    failed.limit(total ? againstBudget(bad, mistakes, now) : unlimited, bad, roundPercent);
    failed.note(['error', 'cancelled', 'incomplete'].filter(name => now.requests[name]).map(name => `${count(now.requests[name])} ${name}`).concat(mistakes ? [`${count(now.failed.client)} by client mistakes`] : []).join(' · ') || (total ? `none of ${count(total)}` : ''));
    const byIndicator = new Map<string, number>();
    for (const {indicator, share} of now.unmeasured) byIndicator.set(indicator, (byIndicator.get(indicator) ?? 0) + share);
    unmeasured.set(total ? percent(Math.max(0, ...byIndicator.values())) : missing);
    unmeasured.note(now.unmeasured.slice(0, 2).map(entry => `${short(entry.indicator as Term)}: ${reason(entry.reason)} (${percent(entry.share)})`).join(' · ') || (total ? 'every request has TTFT and TPOT' : ''));
    this.updateSLOs(now.slos, now.vantage.shown);
  }

  sparklines(total: Rates | undefined): void {
    if (!total) return;
    this.tiles.requests.spark.update(total.requests_per_second);
    this.tiles.tokens.spark.update(total.output_tokens_per_second);
    this.tiles.flight.spark.update(total.in_flight);
  }

  private updateSLOs(slos: SLONow[], shown = ''): void {
    if (slos.map(({slo}) => slo).join('\n') !== [...this.cards.keys()].join('\n') || !this.slos.firstChild) {
      this.cards = new Map(slos.map(({slo}) => [slo, card(slo, this.view)]));
      fill(this.slos, ...[...this.cards.values()].map(({element}) => element),
        slos.length === 0 && h('p', {class: 'card muted'}, ...report ? ['No SLO. Add ', h('code', {}, '--slos'), ': attainment then appears here.']
          : ['No SLO yet. Add ', h('code', {}, 'slos'), ' to token_latency and ', h('code', {}, 'objectives'), ' to token_sli: attainment, burn rate and error budget then appear here.']));
      this.showWorst();
    }
    for (const slo of slos) this.cards.get(slo.slo)?.update(slo, shown);
  }
}

/** Returns a line that names the group that stands out. A click shows only that group. */
function standoutLine(what: 'bad' | 'slow', view: View): {element: HTMLElement; name: (group: Standout | undefined, value: string | undefined) => void} {
  let current: Standout | undefined;
  const button = h('button', {type: 'button', class: 'only', hidden: true, onclick: () => { if (current) view.setFilter(current.by, current.value); }});
  const element = h('p', {class: 'worst'}, button);
  return {element, name: (group, value) => {
    current = group;
    button.hidden = !group;
    if (!group) return;
    button.disabled = !view.offersFilter(group.by, group.value);
    button.title = `Show only ${dimensionName(group.by)} ${valueName(group.value)}: ${count(group.requests)} requests, ${value ?? missing}`;
    const text = ` · ${dimensionName(group.by)}: ${percent(group.share_of_bad)} of the ${what} requests, ${percent(group.share_of_all)} of all`;
    if (button.textContent !== valueName(group.value) + text) fill(button, h('bdi', {}, valueName(group.value)), text);
  }};
}

/** The p95 of an indicator in the colour of its threshold, and a pill with the SLO on it that does worst. */
function headline(indicator: typeof headlines[number], view: View) {
  const value = h('span', {}, missing);
  const relation = limit();
  const second = h('small', {class: 'second'});
  const badge = h('span', {class: 'verdict'});
  const {element: line, name} = standoutLine('slow', view);
  const element = h('div', {class: 'card tile headline', id: `headline-${indicator}`, title: long(indicator)},
    h('dt', {}, `${short(indicator)} p95`), h('dd', {class: 'value'}, value, relation.element, second), h('dd', {}, badge), h('dd', {}, line));
  return {element, name, set(now: Now): void {
    const p95 = now.indicators[indicator]?.p95;
    setText(value, duration(p95));
    setText(second, indicator === 'time_per_output_token' ? speed(p95) : '');
    const limited = againstThresholds(indicator, now);
    element.dataset.level = limited.level;
    relation.set(limited, p95, roundDuration);
    const [judged] = byLevel(slosOn(indicator, now).map(slo => ({name: slo.slo, ...verdict(slo)})));
    const text = judged ? `${judged.name}: ${judged.word}` : 'no SLO';
    if (badge.textContent === text) return;
    badge.dataset.level = judged?.level ?? 'none';
    fill(badge, judged && icon(judged.icon), h('span', {title: text}, text));
  }};
}

/** Says on which side of its limit a number is. */
function limit() {
  const element = h('small', {class: 'limit'});
  return {element, set({limit, slo}: Limited, value: number | undefined, format: (limit: number) => string): void {
    setText(element, limit === null || value === undefined ? '' : `${value <= limit ? '≤' : '>'} ${format(limit)}`);
    element.title = slo;
  }};
}

function tile(name: string, unit: string, title?: string) {
  const value = h('span', {}, missing);
  const relation = limit();
  const note = h('dd', {class: 'note'});
  const spark = sparkline();
  const element = h('div', {class: `card tile ${unit ? 'rate' : 'fact'}`, ...(title ? {title} : {})},
    h('dt', {}, name), h('dd', {class: 'value'}, value, unit ? h('small', {}, unit) : relation.element), unit ? h('dd', {}, spark.element) : note);
  return {element, spark, set: (text: string) => setText(value, text), note: (text: string) => setText(note, text),
    limit(limited: Limited, number: number, format: (limit: number) => string): void {
      element.dataset.level = limited.level;
      relation.set(limited, number, format);
    }};
}

function card(name: string, view: View) {
  const facts = h('div', {class: 'facts-of-slo'});
  const {element: line, name: standOut} = standoutLine('bad', view);
  let drawn = '';
  return {element: h('div', {class: 'card slo', 'data-slo': name}, facts, line), name: standOut, update(slo: SLONow, shown: string): void {
    const key = JSON.stringify([slo, shown]);
    if (key !== drawn) fill(facts, ...content(slo, shown));
    drawn = key;
  }};
}

function content(slo: SLONow, shown: string): Child[] {
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
  return [
    h('div', {class: 'name'}, h('span', {title: slo.slo}, slo.slo), h('span', {class: 'verdict', 'data-level': level}, icon(name), word)),
    h('dl', {},
      fact('Attainment', percent(slo.attainment), `${count(slo.good)} good, ${count(slo.bad)} bad, ${count(slo.not_eligible)} not eligible over the range, client mistakes among them`),
      ...report ? [] : [fact('Burn rate', burn?.rate == null ? missing : `${digits(burn.rate, 2)}×`, shortest.map(({window_seconds, rate}) => `${window(window_seconds)}: ${rate === null ? missing : digits(rate, 2)}×`).join('\n'), burn && window(burn.window_seconds)),
      fact('Budget left', percent(left), slo.budget_window_seconds ? `Error budget of ${window(slo.budget_window_seconds)}` : 'No objective, no budget')]),
    !report && h('div', {class: 'meter', 'data-level': level, 'aria-hidden': 'true'}, left !== null && bar),
    h('p', {class: 'rule'}, text, slo.objective !== null && ` · objective ${percent(slo.objective)}`, slo.judged !== null && ` · judges ${percent(slo.judged)}`,
      slo.vantage !== shown && ` · seen by ${slo.vantage}`),
  ];
}

function window(seconds: number): string {
  if (seconds % 86400 === 0) return `${seconds / 86400}d`;
  return seconds % 3600 === 0 ? `${seconds / 3600}h` : `${Math.round(seconds / 60)}m`;
}
