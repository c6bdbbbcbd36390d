// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import uPlot from 'uplot';
import type {Heatmap} from '../api';
import {cssColor} from '../dom';
import {roundDuration} from '../units';
import {Plot, axis, timeAxis} from './plot';

/** Values by time and logarithmic bucket. A cell's colour is the logarithm of its count. */
export class HeatChart {
  private map: Heatmap | null = null;
  private plot: Plot;

  constructor(label: string, sync: string, private onCell: (column: number, row: number | null) => void, private onLeave: () => void) {
    this.plot = new Plot(size => this.create(size, sync), label, () => undefined, true);
  }

  get element(): HTMLElement { return this.plot.element; }

  get largest(): number { return Math.max(1, ...(this.map?.counts ?? []).map(column => column.reduce((a, b) => Math.max(a, b), 0))); }

  update(map: Heatmap, describe: string): void {
    this.map = map;
    this.plot.describe(describe);
    this.plot.update('heat', {x: map.times, lines: [map.times.map(() => null)]});
  }

  private create(size: {width: number; height: number}, sync: string): uPlot.Options {
    return {
      ...size,
      padding: [10, 26, 0, 0],
      legend: {show: false},
      cursor: {drag: {x: false, y: false}, points: {show: false}, sync: {key: sync, setSeries: false, scales: ['x', null]}},
      scales: {
        x: {time: true, range: (_, min, max) => [min, max + (this.map?.step_seconds ?? 0)]},
        y: {distr: 3, log: 10, range: () => this.bounds()},
      },
      axes: [timeAxis(), axis({size: 58, grid: {show: false}, values: (_, ticks) => ticks.map(tick => (tick === null ? '' : roundDuration(tick)))})],
      series: [{}, {points: {show: false}}],
      hooks: {draw: [u => this.paint(u)], setCursor: [u => this.point(u)]},
    };
  }

  private bounds(): [number, number] {
    const bounds = this.map?.bounds ?? [];
    return bounds.length > 1 ? [Math.max(bounds[0] ?? 0, 1e-6), bounds[bounds.length - 1] ?? 1] : [1e-3, 1];
  }

  private paint(u: uPlot): void {
    const map = this.map;
    if (!map || map.bounds.length < 2) return;
    const {ctx, bbox} = u;
    const colors = ramp();
    const scale = (colors.length - 1) / Math.log1p(this.largest);
    const rows = map.bounds.map(bound => Math.round(u.valToPos(Math.max(bound, 1e-6), 'y', true)));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    map.times.forEach((time, column) => {
      const left = Math.round(u.valToPos(time, 'x', true));
      const width = Math.round(u.valToPos(time + map.step_seconds, 'x', true)) - left;
      map.counts[column]?.forEach((count, row) => {
        if (count === 0) return;
        const [bottom = 0, top = 0] = [rows[row], rows[row + 1]];
        ctx.fillStyle = colors[Math.max(1, Math.round(Math.log1p(count) * scale))] ?? '';
        ctx.fillRect(left, top, width, bottom - top);
      });
    });
    ctx.restore();
  }

  private point(u: uPlot): void {
    const map = this.map;
    const {left, top} = u.cursor;
    if (!map || left === undefined || left < 0) {
      this.onLeave();
      return;
    }
    const at = u.posToVal(left, 'x');
    const column = map.times.findLastIndex(time => time <= at);
    const value = top === undefined || top < 0 ? 0 : u.posToVal(top, 'y');
    const row = map.bounds.findLastIndex(bound => bound < value);
    if (column < 0) this.onLeave();
    else this.onCell(column, row >= 0 && row < map.bounds.length - 1 ? row : null);
  }
}

/** Returns 64 colours between the five of the theme. */
function ramp(): string[] {
  const stops = [0, 1, 2, 3, 4].map(i => rgb(cssColor(`--heat-${i}`)));
  return Array.from({length: 64}, (_, i) => {
    const at = i / 63 * 4;
    const low = Math.min(3, Math.floor(at));
    const [from, to] = [stops[low] ?? [0, 0, 0], stops[low + 1] ?? [0, 0, 0]];
    return `rgb(${from.map((channel, c) => Math.round(channel + ((to[c] ?? 0) - channel) * (at - low))).join()})`;
  });
}

const rgb = (hex: string) => [1, 3, 5].map(i => Number.parseInt(hex.slice(i, i + 2), 16));
