// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Prompts, type Summary, read} from '../api';
import {LineChart, type Line} from '../charts/lines';
import {fill, h, setText, swatch} from '../dom';
import {type Section, frame} from '../section';
import {count, duration, roundNumber} from '../units';
import type {View} from '../view';

const kinds = [{name: 'uncached', color: '--series-1'}, {name: 'cached', color: '--series-2'}] as const;

/** TTFT by prompt length, with prompts that the engine had cached apart. */
export class PromptsSection implements Section {
  private answer: Prompts | null = null;
  private caption = h('p', {class: 'caption'});
  private nodata = h('div', {class: 'nodata'});
  private chart = new LineChart({label: 'TTFT by prompt length', x: {tick: roundNumber, log: 2}, onCursor: index => this.point(index)});
  readonly element = frame('prompts', 'Time to first token by prompt length', 'By input tokens, on a logarithmic axis.', [], h('figure', {class: 'card chart'},
    h('p', {class: 'keys'}, ...kinds.map(({name, color}) => h('span', {}, swatch(color), `${name} prompt`)), 'p50 solid · p95 dashed'), h('div', {class: 'chart'}, this.chart.element, this.nodata), this.caption));

  constructor(private view: View) {}

  async load(signal: AbortSignal): Promise<void> {
    const {buckets} = this.answer = await read<Prompts>('prompts', this.view.query(), signal);
    const lines = kinds.flatMap(({name, color}): Line[] => [
      {name: `${name} p50`, color, points: true, values: buckets.map(bucket => bucket[name]?.p50 ?? null)},
      {name: `${name} p95`, color, points: true, dash: [8, 4], values: buckets.map(bucket => bucket[name]?.p95 ?? null)},
    ]).filter(({values}) => values.some(value => value !== null));
    fill(this.nodata, buckets.length === 0 && h('p', {}, 'No span in this range has input tokens and a TTFT. Metrics do not have the two as a pair: take ', h('code', {}, 'token_stream'),
      ' out of metrics pipelines, so that its spans count.'));
    this.chart.update(buckets.map(({from_tokens: from, to_tokens: to}) => Math.max(1, Math.sqrt(Math.max(1, from) * (to ?? from * 2)))), lines, {
      describe: `TTFT by prompt length: ${buckets.map(bucket => `${length(bucket)} ${words(bucket)}`).join('; ')}`,
    });
    this.point(null);
  }

  private point(index: number | null): void {
    const buckets = this.answer?.buckets ?? [];
    const bucket = index === null ? undefined : buckets[index];
    const requests = buckets.reduce((sum, {uncached, cached}) => sum + (uncached?.count ?? 0) + (cached?.count ?? 0), 0);
    setText(this.caption, bucket ? `${length(bucket)}: ${words(bucket)}` : `${count(requests)} requests`);
  }
}

type Bucket = Prompts['buckets'][number];

const length = ({from_tokens: from, to_tokens: to}: Bucket) => (to === null ? `${count(from)} tokens and more` : `${count(from)} to ${count(to)} tokens`);
const words = (bucket: Bucket) => kinds.filter(({name}) => bucket[name]).map(({name}) => `${name} ${numbers(bucket[name])}`).join(' · ');
const numbers = (summary: Summary | null) => `p50 ${duration(summary?.p50)}, p95 ${duration(summary?.p95)} (${count(summary?.count)})`;
