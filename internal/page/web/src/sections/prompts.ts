// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Prompts, type Summary, read} from '../api';
import {LineChart, type Line, dashes} from '../charts/lines';
import {fill, h, setText, swatch} from '../dom';
import {type Section, frame} from '../section';
import {count, duration, roundNumber} from '../units';
import type {View} from '../view';
import {percentileKeys} from './load';

const kinds = [{name: 'uncached', color: '--series-1'}, {name: 'cached', color: '--series-2'}, {name: 'together', color: '--series-1'}] as const;

/** TTFT by prompt length, with prompts that the engine had cached apart. */
export class PromptsSection implements Section {
  private answer: Prompts | null = null;
  private steps: {x: number; i: number; value: number}[] = [];
  private caption = h('p', {class: 'caption'});
  private keys = h('p', {class: 'keys'});
  private nodata = h('div', {class: 'nodata'});
  private chart = new LineChart({label: 'TTFT by prompt length', x: {tick: roundNumber, log: 2}, onCursor: index => this.point(index)});
  readonly element = frame('prompts', 'Time to first token by prompt length', 'By input tokens, on a logarithmic axis.', [], h('figure', {class: 'card chart'},
    this.keys, h('div', {class: 'chart'}, this.chart.element, this.nodata), this.caption));

  constructor(private view: View) {}

  async load(signal: AbortSignal): Promise<void> {
    const {buckets, cached_from: from} = this.answer = await read<Prompts>('prompts', this.view.query(), signal);
    // A value holds for all lengths of its bucket: a step, that ends where no bucket follows.
    this.steps = buckets.flatMap((bucket, i) => {
      const end = (bucket.to_tokens ?? bucket.from_tokens * 2) + 1;
      return [{x: bucket.from_tokens, i, value: i}, ...(buckets[i + 1]?.from_tokens === end ? [] : [{x: end, i, value: i + 1 < buckets.length ? -1 : i}])];
    });
    const lines = kinds.flatMap(({name, color}): Line[] => (['p50', 'p95'] as const).map(percentile => (
      {name: `${name} ${percentile}`, color, dash: dashes[percentile], stepped: 1 as const, values: this.steps.map(({value}) => buckets[value]?.[name]?.[percentile] ?? null)}
    ))).filter(({values}) => values.some(value => value !== null));
    const keys = {uncached: from === null ? 'uncached prompt' : `cached below ${roundNumber(100 * from)}%`, cached: from === null ? 'cached prompt' : `cached from ${roundNumber(100 * from)}% on`, together: 'any prompt'};
    const shown = kinds.filter(({name}) => buckets.some(bucket => bucket[name]) || buckets.length === 0 && name !== 'together');
    fill(this.keys, ...shown.map(({name, color}) => h('span', {}, swatch(color), keys[name])), percentileKeys(['p50', 'p95']));
    fill(this.nodata, buckets.length === 0 && h('p', {}, 'No request in this range has input tokens and a TTFT. Metrics do not have the two as a pair: add ', h('code', {}, 'bands'), ' of ', h('code', {}, 'gen_ai.usage.input_tokens'),
      ' to ', h('code', {}, 'dimensions'), ' of producers and exporter, or take ', h('code', {}, 'token_stream'), ' out of metrics pipelines, so that its spans count.'));
    this.chart.update(this.steps.map(({x}) => x), lines, {
      scale: '',
      describe: `TTFT by prompt length: ${buckets.map(bucket => `${length(bucket)} ${words(bucket)}`).join('; ')}`,
    });
    this.point(null);
  }

  private point(index: number | null): void {
    const buckets = this.answer?.buckets ?? [];
    const bucket = index === null ? undefined : buckets[this.steps[index]?.i ?? -1];
    const requests = buckets.reduce((sum, bucket) => kinds.reduce((n, {name}) => n + (bucket[name]?.count ?? 0), sum), 0);
    setText(this.caption, bucket ? `${length(bucket)}: ${words(bucket)}` : `${count(requests)} requests`);
  }
}

type Bucket = Prompts['buckets'][number];

const length = ({from_tokens: from, to_tokens: to}: Bucket) => (to === null ? `${count(from)} tokens and more` : `${count(from)} to ${count(to)} tokens`);
const words = (bucket: Bucket) => kinds.filter(({name}) => bucket[name]).map(({name}) => `${name === 'together' ? 'all' : name} ${numbers(bucket[name])}`).join(' · ');
const numbers = (summary: Summary | null) => `p50 ${duration(summary?.p50)}, p95 ${duration(summary?.p95)} (${count(summary?.count)})`;
