// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Load, type LoadCapacity, type LoadCurve, type Now, type Percentile, type SLONow, read} from '../api';
import {LineChart, type Line, type Mark, dashes} from '../charts/lines';
import {segments} from '../controls';
import {fill, h, pause, setText} from '../dom';
import {type Section, frame} from '../section';
import {short, termLink, valueOf} from '../terms';
import {amount, count, percent, roundDuration, roundNumber} from '../units';
import type {View} from '../view';

type Axis = 'in_flight' | 'output_tokens_per_second';
const indicators = ['time_per_output_token', 'time_to_first_token'] as const;
const curves: {name: Percentile; dash: number[] | undefined}[] = (['p50', 'p95', 'p99'] as const).map(name => ({name, dash: dashes[name]}));

/** Latency by load, from the traffic itself: the throughput-latency curve. */
export class LoadSection implements Section {
  private slos: SLONow[] = [];
  private answer: Load | null = null;
  private captions = indicators.map(() => h('p', {class: 'caption'}));
  private nodata = indicators.map(() => h('div', {class: 'nodata'}));
  private text = h('span');
  private charts = indicators.map((indicator, i) => new LineChart({
    label: `${short(indicator)} by load`, sync: 'load', x: {tick: roundNumber}, onCursor: index => this.caption(i, index),
  }));
  private choice = segments('Load', [{value: 'in_flight', name: 'in flight'}, {value: 'output_tokens_per_second', name: 'tokens/s'}], () => this.axis, value => {
    this.view.set({load: value === 'in_flight' ? '' : value});
  });
  readonly element = frame('load', 'Speed against load', this.text, [this.choice.element],
    h('div', {class: 'grid'}, ...indicators.map((indicator, i) => h('figure', {class: 'card chart'},
      h('figcaption', {class: 'title'}, h('h3', {}, termLink(indicator)), h('span', {class: 'muted'}, percentileKeys())),
      h('div', {class: 'chart'}, this.charts[i]?.element, this.nodata[i]), this.captions[i]))));

  constructor(private view: View) {}

  private get axis(): Axis { return this.view.get('load') === 'output_tokens_per_second' ? 'output_tokens_per_second' : 'in_flight'; }
  private get curve(): LoadCurve | undefined { return this.answer?.[this.axis]; }

  async load(signal: AbortSignal): Promise<void> {
    this.answer = await read<Load>('load', this.view.query(), signal);
    this.choice.update();
    const axis = this.axis === 'in_flight' ? 'requests in flight' : 'output tokens per second';
    const reached = this.curve?.slos.filter(slo => slo.largest_load !== null).map(slo => `${slo.slo} up to ${amount(slo.largest_load)}`) ?? [];
    setText(this.text, `Percentiles by ${axis}, in slots of ${roundDuration(this.answer.slot_seconds)}.${reached.length > 0 ? ` Objectives met: ${reached.join(', ')}.` : ''}${this.answer.capacity.map(capacity => ` ${room(capacity)}`).join('')}`);
    await this.draw();
  }

  thresholds(now: Now): void { this.slos = now.slos; }

  private async draw(): Promise<void> {
    const {curve} = this;
    if (!curve) return;
    const x = curve.points.map(({load}) => load);
    const marks: (Mark & {slos: string[]})[] = [];
    for (const {slo, largest_load: load} of curve.slos) {
      const at = marks.find(mark => mark.x === load);
      if (at) {
        at.label += `, ${slo}`;
        at.slos.push(slo);
      } else if (load !== null) marks.push({x: load, slos: [slo], label: `${amount(load)} is the largest load that met ${slo}`});
    }
    const last = x.at(-1) ?? 0;
    for (const {slo, limit} of this.axis === 'output_tokens_per_second' ? this.answer?.capacity ?? [] : []) {
      if (limit) marks.push({x: limit.output_tokens, slos: [slo], label: `${amount(limit.output_tokens)}${limit.output_tokens > last ? ', right of the chart,' : ''} is the limit of the replicas within ${named(slo)}`});
    }
    for (const [i, indicator] of indicators.entries()) {
      const lines = curves.map(({name, ...rest}): Line => ({name, color: '--series-1', points: true, ...rest, values: curve.points.map(point => point[indicator]?.[name] ?? null)}));
      const own = this.slos.filter(slo => slo.threshold !== null && slo.indicator === indicator);
      const none = this.nodata[i];
      if (none) fill(none, x.length === 0 && 'No traffic in this range');
      this.charts[i]?.update(x, lines, {
        thresholds: own.map(slo => ({label: `${slo.slo} ≤ ${roundDuration(slo.threshold ?? 0)}`, value: slo.threshold ?? 0})),
        marks: marks.filter(({slos}) => own.length === 0 || slos.includes('all') || own.some(({slo}) => slos.includes(slo))),
        scale: '',
        describe: `${short(indicator)} by load: ${curve.points.map(point => `at ${amount(point.load)} p95 ${valueOf(indicator, point[indicator]?.p95)}`).join('; ')}`,
      });
      this.caption(i, null);
      await pause();
    }
  }

  private caption(i: number, index: number | null): void {
    const [indicator, element] = [indicators[i], this.captions[i]];
    const point = index === null ? undefined : this.curve?.points[index];
    if (!indicator || !element) return;
    if (!point) {
      setText(element, `${count(this.curve?.points.reduce((sum, {requests}) => sum + requests, 0))} requests at ${count(this.curve?.points.length)} loads`);
      return;
    }
    const slos = point.slos.map(slo => ` · ${slo.slo} ${percent(slo.attainment)}`).join('');
    setText(element, `load ${amount(point.from)} to ${amount(point.to)}: ${curves.map(({name}) => `${name} ${valueOf(indicator, point[indicator]?.[name])}`).join(', ')} · ${count(point.requests)} requests${slos}`);
  }
}

const unknown = {
  too_few: 'too few requests met it, or none came lately',
  knee_not_seen: 'no load has been too high yet',
  mix_changed: 'prompts or answers became longer or shorter, and their limit is being learned',
  several_series: 'filter by one model, service and operation',
};

const named = (slo: string): string => slo === 'all' ? 'all SLOs' : slo;

/** Says how much more load the replicas can take now. */
const room = ({slo, reason, room, stale}: LoadCapacity): string => reason === null
  ? `Room for ${amount(room)} more requests/s within ${named(slo)}${stale ? ', as learned over a day ago' : ''}.`
  : `The limit within ${named(slo)} is unknown: ${unknown[reason]}.`;

/** Says which dash is which percentile. */
export const percentileKeys = (shown: Percentile[] = ['p50', 'p95', 'p99']): string =>
  shown.map(name => `${name} ${{p50: 'dotted', p95: 'solid', p99: 'dashed'}[name]}`).join(' · ');
