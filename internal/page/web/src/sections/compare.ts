// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import uPlot from 'uplot';
import {type Distributions, type Group, type Indicator, type Meta, type Summary, indicators, read} from '../api';
import {LineChart, type Line} from '../charts/lines';
import {select} from '../controls';
import {fill, h, pause, setText, swatch} from '../dom';
import {type Colors, defaultSplit, groupings} from '../groups';
import {offers, report} from '../report';
import {type Section, frame, notice} from '../section';
import {dimensionName, isolated, short, termLink, valueName, valueOf} from '../terms';
import {count, roundDuration, missing, percent} from '../units';
import type {View} from '../view';
import {VerdictCard} from './verdict';

const rows = ['p50', 'p95', 'p99', 'mean'] as const;

/** Two values of a dimension side by side, with their distributions drawn over one another. */
export class CompareSection implements Section {
  private dimension = select('Dimension', value => this.view.set({compare: value, a: '', b: ''}));
  private sides = [select('First', value => this.view.set({compare: this.by, a: value, b: this.pair[1]})), select('Second', value => this.view.set({compare: this.by, a: this.pair[0], b: value}))] as const;
  private cards = indicators.map(indicator => new CompareCard(indicator));
  private hint = h('div');
  private verdict = new VerdictCard(this.view, this.meta);
  readonly element = frame('compare', 'Compare', 'The share of values at or under each latency. The curve further to the left is the faster one.', [this.dimension.element, this.sides[0].element, this.sides[1].element],
    this.hint, this.verdict.element, h('div', {class: 'grid'}, ...this.cards.map(({element}) => element)));

  constructor(private view: View, private meta: () => Meta, private colors: Colors) {}

  private get by(): string { return this.view.get('compare') || defaultSplit(this.meta()); }

  private get values(): string[] { return this.offered.find(({name}) => name === this.by)?.values ?? []; }

  /** Dimensions with the values that can be compared. A report has few of them. */
  private get offered(): {name: string; values: string[]}[] {
    const all = groupings(this.meta()).map(({name, values}) => ({name, values: values.filter(value => offers('distributions', this.question(name, [value])))}));
    return report ? all.filter(({values}) => values.length > 1) : all;
  }

  private question(by: string, value: string[]): URLSearchParams { return this.view.query({by, value, cdf: 'true'}, by); }

  private get pair(): [string, string] {
    const {values} = this;
    const a = this.view.get('a') || values[0] || '';
    return [a, this.view.get('b') || values.find(value => value !== a) || ''];
  }

  async load(signal: AbortSignal): Promise<void> {
    const [a, b] = this.pair;
    this.dimension.update(this.offered.map(({name}) => ({value: name, name: dimensionName(name)})), this.by);
    this.sides.forEach((side, i) => side.update(this.values.map(value => ({value, name: valueName(value)})), (i === 0 ? a : b)));
    const two = this.values.length > 1;
    if (!two) fill(this.hint, report ? notice('Nothing to compare', 'The requests of the files share one value of each dimension.')
      : notice(`Only one value of ${dimensionName(this.by)} so far`, 'Choose another dimension, or send requests with a second value.'));
    for (const card of [...this.cards, this.verdict]) card.element.hidden = !two;
    if (!two) return;
    if (report) this.verdict.element.hidden = true; // a Collector compares
    else await this.verdict.load(this.by, [a, b], signal);
    const answer = await read<Distributions>('distributions', this.question(this.by, [a, b]), signal);
    const find = (value: string) => answer.groups.find(group => group.value === value);
    const absent = [a, b].filter(value => !find(value)).map(value => isolated(valueName(value)));
    const filtered = groupings(this.meta()).filter(({name}) => name !== this.by && this.view.filter(name).length > 0).map(({name}) => dimensionName(name));
    fill(this.hint,
      this.view.filter(this.by).length > 0 && h('p', {class: 'caption'}, `The filter on ${dimensionName(this.by)} does not apply to this comparison.`),
      absent.length > 0 && notice(`No request of ${absent.join(' or ')} in ${this.view.ended ? 'this range' : `the last ${this.view.range}`}${filtered.length > 0 ? ` with the filters on ${filtered.join(', ')}` : ''}`, 'Widen the range, clear the filters, or compare others.'));
    for (const card of this.cards) {
      card.update([a, b], [find(a), find(b)], this.colors.pair(a, b));
      await pause();
    }
  }
}

class CompareCard {
  private body = h('tbody');
  private head = h('tr');
  private caption = h('p', {class: 'caption'});
  private nodata = h('div', {class: 'nodata'});
  private x: number[] = [];
  private lines: Line[] = [];
  private chart: LineChart;
  readonly element: HTMLElement;

  constructor(private indicator: Indicator) {
    this.chart = new LineChart({label: `Distribution of ${short(indicator)}`, x: {tick: roundDuration, log: 10}, y: {tick: value => `${Math.round(value * 100)}%`, max: 1}, onCursor: index => this.point(index)});
    this.element = h('figure', {class: 'card chart'}, h('figcaption', {class: 'title'}, h('h3', {}, termLink(indicator)), h('span', {class: 'muted'}, short(indicator))),
      h('div', {class: 'chart'}, this.chart.element, this.nodata), this.caption, h('div', {class: `legend ${indicator}`}, h('table', {}, h('thead', {class: 'names'}, this.head), this.body)));
  }

  update(names: [string, string], groups: [Group | undefined, Group | undefined], colors: [string, string]): void {
    const summaries = groups.map(group => group?.indicators[this.indicator]);
    const [a, b] = summaries;
    fill(this.head, h('th', {scope: 'col'}, ''), ...names.map((name, i) => h('th', {scope: 'col', class: 'number', title: valueName(name)}, swatch(colors[i] ?? ''), h('bdi', {}, valueName(name)))), h('th', {scope: 'col', class: 'number', title: 'Second compared with first'}, 'change'));
    fill(this.body, ...rows.map(row => h('tr', {}, h('td', {}, row), ...[a, b].map(side => h('td', {class: 'number'}, valueOf(this.indicator, side?.[row]))), h('td', {class: 'number'}, change(a?.[row], b?.[row])))),
      h('tr', {}, h('td', {}, this.indicator === 'inter_token_latency' ? 'tokens' : 'requests'), h('td', {class: 'number'}, count(a?.count)), h('td', {class: 'number'}, count(b?.count)), h('td')));
    this.draw(names, summaries, colors);
  }

  private draw(names: [string, string], summaries: (Summary | undefined)[], colors: [string, string]): void {
    const drawn = summaries.map((summary, i) => ({name: valueName(names[i] ?? ''), color: colors[i] ?? '', cdf: summary?.cdf})).filter(({cdf}) => cdf && cdf.at.length > 0);
    fill(this.nodata, drawn.length === 0 && `No ${short(this.indicator)} in this range`);
    const [x = [], ...values] = drawn.length > 0 ? uPlot.join(drawn.map(({cdf}) => [cdf?.at.map(at => Math.max(at, 1e-6)) ?? [], cdf?.share ?? []])) : [];
    this.x = [...x];
    this.lines = drawn.map(({name, color}, i) => ({name, color, width: 2, values: [...values[i] ?? []]}));
    this.chart.update(this.x, this.lines, {describe: `Distribution of ${short(this.indicator)} for ${drawn.map(({name}) => name).join(' and ')}. The table below has percentiles.`});
    this.point(null);
  }

  private point(index: number | null): void {
    const at = index === null ? undefined : this.x[index];
    setText(this.caption, at === undefined ? '' : `${valueOf(this.indicator, at)}: ${this.lines.map(({name, values}) => `${percent(before(values, index ?? 0))} of ${isolated(name)}`).join(' · ')}`);
  }
}

/** Returns the last share at or before an index: a CDF keeps it until its next value. */
function before(values: (number | null | undefined)[], index: number): number {
  for (let i = index; i >= 0; i--) {
    const value = values[i];
    if (value !== null && value !== undefined) return value;
  }
  return 0;
}

function change(from: number | undefined, to: number | undefined): string {
  if (!from || to === undefined) return missing;
  const ratio = to / from - 1;
  return `${ratio > 0 ? '+' : ratio < 0 ? '−' : ''}${percent(Math.abs(ratio))}`;
}
