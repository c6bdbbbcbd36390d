// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Distributions, type Indicator, type Meta, type Now, type Percentile, type Rates, type SLONow, type Trends, indicators, read} from '../api';
import {LineChart, type YScale, dashes} from '../charts/lines';
import {segments} from '../controls';
import {fill, h, pause, setText, swatch} from '../dom';
import {type Colors, maxGroups, split, splitBy, withOthers} from '../groups';
import {offers} from '../report';
import {type Section, frame} from '../section';
import {dimensionName, others, short, termLink, valueName, valueOf} from '../terms';
import {count, roundDuration, time} from '../units';
import type {View} from '../view';

const percentiles: Percentile[] = ['p50', 'p95', 'p99'];
const crosshair = 'time';

/** Returns the scale of latencies. An empty one is linear, unless a value would flatten the others. */
const scaleOf = (view: View): YScale => {
  const chosen = view.get('scale');
  return chosen === 'linear' || chosen === 'log' ? chosen : '';
};

/** Percentiles of the four indicators over time, by group. */
export class TrendsSection implements Section {
  private charts = indicators.map(indicator => new TrendChart(indicator, this.view, this.colors, value => this.highlight(value)));
  private shown = h('span');
  private choice = segments('Percentile', percentiles.map(value => ({value, name: value})), () => this.percentile, value => this.view.set({percentile: value === 'p95' ? '' : value}));
  private rank = segments('Order', [{value: '', name: 'worst first'}, {value: 'requests', name: 'most requests'}], () => this.view.get('rank'), rank => this.view.set({rank}), rank => offers('trends', this.view.query(split(this.view, this.meta(), maxGroups, undefined, rank))));
  private scale = segments('Scale', [{value: '', name: 'auto'}, {value: 'linear', name: 'linear'}, {value: 'log', name: 'log'}], () => scaleOf(this.view), scale => this.view.set({scale}));
  readonly element = frame('trends', 'Over time', this.shown, [this.rank.element, this.scale.element, this.choice.element], h('div', {class: 'grid'}, ...this.charts.map(({element}) => element)));

  constructor(private view: View, private meta: () => Meta, private colors: Colors, private onTotal: (total: Rates | undefined) => void) {}

  private get percentile(): Percentile {
    const chosen = this.view.get('percentile');
    return chosen === 'p50' || chosen === 'p99' ? chosen : 'p95';
  }

  /** Reserves the room of the tables before their numbers arrive. */
  reserve(meta: Meta): void {
    const values = meta.dimensions.find(({name}) => name === splitBy(this.view, meta))?.values.length ?? 4;
    this.element.style.setProperty('--rows', String(Math.min(maxGroups + 1, values))); // with that of all others
  }

  async load(signal: AbortSignal): Promise<void> {
    const query = this.view.query(split(this.view, this.meta(), maxGroups));
    const [trends, whole] = await Promise.all([read<Trends>('trends', query, signal), read<Distributions>('distributions', query, signal)]);
    this.colors.assign(trends.groups.map(({value}) => value));
    [trends.groups, whole.groups] = [withOthers(trends), withOthers(whole)];
    this.choice.update();
    this.rank.update();
    this.scale.update();
    const order = this.view.get('rank') === 'requests' ? 'with the most requests' : 'that are worst';
    const more = trends.others ? ` Shown: the ${maxGroups} of ${count(trends.groups_total)} ${order}, and all others together.` : '';
    setText(this.shown, `${this.percentile} by ${dimensionName(trends.by)}, one point every ${roundDuration(trends.step_seconds)}. Arrow keys move the crosshair.${more}`);
    for (const chart of this.charts) {
      chart.update(trends, whole, this.percentile);
      await pause();
    }
    this.onTotal(trends.total);
  }

  thresholds(now: Now): void { for (const chart of this.charts) chart.thresholds(now.slos); }

  private highlight(value: string | null): void { for (const chart of this.charts) chart.highlight(value); }
}

class TrendChart {
  private caption = h('p', {class: 'caption'});
  private body = h('tbody');
  private nodata = h('div', {class: 'nodata'});
  private rows = new Map<string, HTMLElement[]>();
  private index: number | null = null;
  private faint: string | null = null;
  private trends: Trends | null = null;
  private whole: Distributions | null = null;
  private percentile: Percentile = 'p95';
  private slos: SLONow[] = [];
  private chart: LineChart;
  readonly element: HTMLElement;

  constructor(private indicator: Indicator, private view: View, private colors: Colors, private onHighlight: (value: string | null) => void) {
    this.chart = new LineChart({label: short(indicator), sync: crosshair, onCursor: index => { this.index = index; this.numbers(); }});
    this.element = h('figure', {class: 'card chart', id: `trend-${indicator}`},
      h('figcaption', {class: 'title'}, h('h3', {}, termLink(indicator)), h('span', {class: 'muted'}, short(indicator))),
      h('div', {class: 'chart'}, this.chart.element, this.nodata),
      h('div', {class: `legend ${indicator}`}, h('table', {},
        h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, this.caption), ...percentiles.map(name => h('th', {scope: 'col', class: 'number'}, name)))),
        this.body)));
  }

  update(trends: Trends, whole: Distributions, percentile: Percentile): void {
    [this.trends, this.whole, this.percentile] = [trends, whole, percentile];
    const values = trends.groups.filter(group => group.indicators[this.indicator]).map(({value}) => value);
    if (values.join('\n') !== [...this.rows.keys()].join('\n')) this.legend(values);
    fill(this.nodata, values.length === 0 && `No ${short(this.indicator)} in this range`);
    this.draw();
    this.numbers();
  }

  thresholds(slos: SLONow[]): void {
    const own = slos.filter(slo => slo.threshold !== null && slo.indicator?.replaceAll('.', '_') === this.indicator);
    if (JSON.stringify(own.map(slo => [slo.slo, slo.threshold])) === JSON.stringify(this.slos.map(slo => [slo.slo, slo.threshold]))) return;
    this.slos = own;
    this.draw();
  }

  highlight(value: string | null): void {
    if (value === this.faint) return;
    this.faint = value;
    this.draw();
  }

  private draw(): void {
    const {trends} = this;
    if (!trends) return;
    const groups = trends.groups.filter(({value}) => this.rows.has(value));
    this.chart.update(trends.times, groups.map(({value, indicators: all}) => ({
      name: value, color: this.colors.of(value), values: all[this.indicator]?.[this.percentile] ?? [], faded: this.faint !== null && this.faint !== value, dash: dashes[this.percentile],
    })), {
      scale: scaleOf(this.view),
      thresholds: this.slos.map(slo => ({label: `${slo.slo} ≤ ${roundDuration(slo.threshold ?? 0)}`, value: slo.threshold ?? 0})),
      describe: `${short(this.indicator)} ${this.percentile} over time for ${groups.map(({value}) => valueName(value)).join(', ')}. The table below has the numbers at the crosshair.`,
    });
  }

  private legend(values: string[]): void {
    this.rows.clear();
    fill(this.body, ...values.map(value => {
      const cells = percentiles.map(() => h('td', {class: 'number'}));
      this.rows.set(value, cells);
      const name = [swatch(this.colors.of(value)), h('bdi', {}, valueName(value))];
      const on = () => this.onHighlight(value);
      const off = () => this.onHighlight(null);
      return h('tr', {onmouseenter: on, onmouseleave: off},
        h('td', {}, value === others ? h('span', {}, ...name) : h('button', {type: 'button', title: `Show only ${valueName(value)}`, disabled: !this.view.offersFilter(this.trends?.by ?? '', value), onfocus: on, onblur: off, onclick: () => this.only(value)}, ...name)), ...cells);
    }));
  }

  private only(value: string): void {
    const by = this.trends?.by ?? '';
    this.onHighlight(null);
    this.view.setFilter(by, value);
  }

  /** Fills the table: at the crosshair, or without one over the whole range. */
  private numbers(): void {
    const at = this.index === null ? undefined : this.trends?.times[this.index];
    setText(this.caption, at === undefined ? 'whole range' : time(at));
    for (const [value, cells] of this.rows) {
      const group = this.trends?.groups.find(entry => entry.value === value)?.indicators[this.indicator];
      const all = this.whole?.groups.find(entry => entry.value === value)?.indicators[this.indicator];
      percentiles.forEach((name, i) => {
        const cell = cells[i];
        if (cell) setText(cell, valueOf(this.indicator, at === undefined ? all?.[name] : group?.[name]?.[this.index ?? 0]));
      });
    }
  }
}
