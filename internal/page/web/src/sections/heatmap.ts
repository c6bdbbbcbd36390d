// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Heatmap, read} from '../api';
import {HeatChart} from '../charts/heat';
import {fill, h, setText} from '../dom';
import {type Section, frame} from '../section';
import {count, duration, percent, time} from '../units';
import type {View} from '../view';

/** ITL over time in logarithmic buckets: a stall or a periodic preemption shows as a band. */
export class HeatmapSection implements Section {
  private map: Heatmap | null = null;
  private caption = h('p', {class: 'caption'});
  private nodata = h('div', {class: 'nodata'});
  private most = h('span', {}, 'many');
  private chart = new HeatChart('Heatmap of inter-token latency', 'time', (column, row) => this.point(column, row), () => setText(this.caption, this.summary()));
  readonly element = frame('heatmap', 'Inter-token latency', 'Tokens by time and gap. Stalls and periodic preemption show as bands above the rest.', [],
    h('div', {class: 'card chart'}, h('p', {class: 'keys'}, h('span', {}, 'few', h('span', {class: 'ramp', 'aria-hidden': 'true'}), this.most)),
      h('div', {class: 'chart'}, this.chart.element, this.nodata), this.caption));

  constructor(private view: View) {}

  async load(signal: AbortSignal): Promise<void> {
    const map = await read<Heatmap>('heatmap', this.view.query(), signal);
    this.map = map;
    fill(this.nodata, map.bounds.length === 0 && 'No inter-token latency in this range');
    this.chart.update(map, `Heatmap of inter-token latency. ${this.summary()}`);
    setText(this.caption, this.summary());
    setText(this.most, `${count(this.chart.largest)} tokens`);
  }

  private summary(): string {
    const {bounds = [], counts = []} = this.map ?? {};
    if (bounds.length < 2) return '';
    const tokens = counts.reduce((sum, column) => sum + column.reduce((a, b) => a + b, 0), 0);
    return `${count(tokens)} gaps between ${duration(bounds[0])} and ${duration(bounds.at(-1))}`;
  }

  private point(column: number, row: number | null): void {
    const {map} = this;
    const counts = map?.counts[column];
    if (!map || !counts) return;
    const tokens = counts.reduce((a, b) => a + b, 0);
    const when = time(map.times[column] ?? 0);
    const cell = row === null ? '' : ` · ${duration(map.bounds[row])} to ${duration(map.bounds[row + 1])}: ${count(counts[row] ?? 0)} tokens (${percent(tokens ? (counts[row] ?? 0) / tokens : 0)} of this step)`;
    setText(this.caption, `${when}${cell || ` · ${count(tokens)} tokens`}`);
  }
}
