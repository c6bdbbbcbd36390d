// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Prompts, type Summary, read} from '../api';
import {LineChart, type Line, dashes} from '../charts/lines';
import {fill, h, setText, swatch} from '../dom';
import {report} from '../report';
import {type Section, frame} from '../section';
import {short, termLink, valueOf} from '../terms';
import {count, missing, roundNumber} from '../units';
import type {View} from '../view';
import {percentileKeys} from './load';

type Bucket = Prompts['buckets'][number];
/** A number of a bucket, with the words before it. */
interface Kind { name: 'uncached' | 'cached' | 'together' | 'time_per_output_token'; words: string; color: string }

const parts: {indicator: 'time_to_first_token' | 'time_per_output_token'; kinds: Kind[]}[] = [
  {indicator: 'time_to_first_token', kinds: [
    {name: 'uncached', words: 'uncached ', color: '--series-1'}, {name: 'cached', words: 'cached ', color: '--series-2'}, {name: 'together', words: 'all ', color: '--series-1'},
  ]},
  {indicator: 'time_per_output_token', kinds: [{name: 'time_per_output_token', words: '', color: '--series-1'}]},
];

/** One indicator by prompt length. */
class PromptsChart {
  private answer: Prompts | null = null;
  private steps: {x: number; i: number; value: number}[] = [];
  private caption = h('p', {class: 'caption'});
  private keys = h('p', {class: 'keys'});
  private nodata = h('div', {class: 'nodata'});
  private chart: LineChart;
  readonly element: HTMLElement;

  constructor(private part: typeof parts[number]) {
    this.chart = new LineChart({label: `${short(part.indicator)} by prompt length`, sync: 'prompts', x: {tick: roundNumber, log: 2}, onCursor: index => this.point(index)});
    this.element = h('figure', {class: 'card chart'}, h('figcaption', {class: 'title'}, h('h3', {}, termLink(part.indicator))),
      this.keys, h('div', {class: 'chart'}, this.chart.element, this.nodata), this.caption);
  }

  update(answer: Prompts): void {
    this.answer = answer;
    const {buckets, cached_from: from} = answer, {indicator, kinds} = this.part;
    // A value holds for all lengths of its bucket: a step, that ends where no bucket follows.
    this.steps = buckets.flatMap((bucket, i) => {
      const end = (bucket.to_tokens ?? bucket.from_tokens * 2) + 1;
      return [{x: bucket.from_tokens, i, value: i}, ...(buckets[i + 1]?.from_tokens === end ? [] : [{x: end, i, value: i + 1 < buckets.length ? -1 : i}])];
    });
    const lines = kinds.flatMap(({name, color}): Line[] => (['p50', 'p95'] as const).map(percentile => (
      {name: `${name} ${percentile}`, color, dash: dashes[percentile], stepped: 1 as const, values: this.steps.map(({value}) => buckets[value]?.[name]?.[percentile] ?? null)}
    ))).filter(({values}) => values.some(value => value !== null));
    const keys = {
      uncached: from === null ? 'uncached prompt' : `cached below ${roundNumber(100 * from)}%`, cached: from === null ? 'cached prompt' : `cached from ${roundNumber(100 * from)}% on`,
      together: 'any prompt', time_per_output_token: 'any prompt',
    };
    const shown = kinds.filter(({name}) => buckets.some(bucket => bucket[name]) || lines.length === 0 && name !== 'together');
    fill(this.keys, ...shown.map(({name, color}) => h('span', {}, swatch(color), keys[name])), percentileKeys(['p50', 'p95']));
    fill(this.nodata, lines.length === 0 && h('p', {}, `No request in this range has input tokens and a ${short(indicator)}.`, ...report ? [] : [' Metrics do not have the two as a pair: add ', h('code', {}, 'bands'), ' of ', h('code', {}, 'gen_ai.usage.input_tokens'),
      ' to ', h('code', {}, 'dimensions'), ' of producers and exporter, or take ', h('code', {}, 'token_stream'), ' out of metrics pipelines, so that its spans count.']));
    this.chart.update(this.steps.map(({x}) => x), lines, {
      scale: '',
      describe: `${short(indicator)} by prompt length: ${buckets.map(bucket => `${length(bucket)} ${this.words(bucket)}`).join('; ')}`,
    });
    this.point(null);
  }

  private point(index: number | null): void {
    const buckets = this.answer?.buckets ?? [];
    const bucket = index === null ? undefined : buckets[this.steps[index]?.i ?? -1];
    const requests = buckets.reduce((sum, bucket) => this.part.kinds.reduce((n, {name}) => n + (bucket[name]?.count ?? 0), sum), 0);
    setText(this.caption, bucket ? `${length(bucket)}: ${this.words(bucket)}` : `${count(requests)} requests`);
  }

  private words(bucket: Bucket): string {
    const numbers = (summary: Summary | null) => `${(['p50', 'p95'] as const).map(name => `${name} ${valueOf(this.part.indicator, summary?.[name])}`).join(', ')} (${count(summary?.count)})`;
    return this.part.kinds.filter(({name}) => bucket[name]).map(({name, words}) => words + numbers(bucket[name])).join(' · ') || missing;
  }
}

const length = ({from_tokens: from, to_tokens: to}: Bucket) => (to === null ? `${count(from)} tokens and more` : `${count(from)} to ${count(to)} tokens`);

/** TTFT by prompt length, with prompts that the engine had cached apart, and TPOT. */
export class PromptsSection implements Section {
  private charts = parts.map(part => new PromptsChart(part));
  readonly element = frame('prompts', 'Speed by prompt length', 'By input tokens, on a logarithmic axis.', [], h('div', {class: 'grid'}, ...this.charts.map(({element}) => element)));

  constructor(private view: View) {}

  async load(signal: AbortSignal): Promise<void> {
    const answer = await read<Prompts>('prompts', this.view.query(), signal);
    for (const chart of this.charts) chart.update(answer);
  }
}
