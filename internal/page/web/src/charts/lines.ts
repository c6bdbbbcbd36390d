// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import uPlot from 'uplot';
import type {Percentile} from '../api';
import {cssColor, fill, h, swatch} from '../dom';
import {roundBelow, roundDuration} from '../units';
import {Plot, axis, timeAxis} from './plot';

export interface Line { name: string; color: string; dash?: number[] | undefined; width?: number; values: (number | null | undefined)[]; points?: boolean; faded?: boolean; stepped?: 1 | -1 }
/** How lines of a percentile are drawn, in every chart. Nothing else is dashed. */
export const dashes: Record<Percentile, number[] | undefined> = {p50: [2, 4], p95: undefined, p99: [8, 4]};

export type YScale = 'linear' | 'log' | '';
export interface Threshold { label: string; value: number }
export interface Mark { label: string; x: number }

export interface LinesOptions {
  label: string;
  /** Charts with the same key share the crosshair. */
  sync?: string;
  x?: {tick: (value: number) => string; log?: 2 | 10};
  y?: {tick: (value: number) => string; max?: number};
  tall?: boolean;
  onCursor?: (index: number | null) => void;
}

/** A chart of lines over time or another quantity, with thresholds and marks. */
export class LineChart {
  private lines: Line[] = [];
  private thresholds: Threshold[] = [];
  private marks: Mark[] = [];
  private plot: Plot;
  /** Names thresholds and marks beside the lines, where they hide nothing. */
  private keys = h('p', {class: 'keys marks'});
  private named = '';
  private logarithmic = false;
  readonly element: HTMLElement;

  constructor(private options: LinesOptions) {
    this.plot = new Plot(size => this.create(size), options.label, index => this.options.onCursor?.(index), options.tall);
    this.element = h('div', {}, this.keys, this.plot.element);
  }

  update(x: number[], lines: Line[], more: {thresholds?: Threshold[]; marks?: Mark[]; describe?: string; scale?: YScale} = {}): void {
    this.lines = lines;
    this.thresholds = more.thresholds ?? [];
    this.marks = more.marks ?? [];
    if (more.describe) this.plot.describe(more.describe);
    this.logarithmic = more.scale === 'log' || more.scale === '' && hasOutlier(lines);
    this.nameMarks();
    const key = String(this.logarithmic) + lines.map(line => [line.name, line.color, line.dash, line.width, line.faded]).join('|');
    this.plot.update(key, {x, lines: lines.map(line => line.values)});
  }

  private nameMarks(): void {
    const names = [...this.thresholds.map(({label, value}) => ['--bad', value > this.top(this.largest()) ? `${label}, above the chart` : label] as const), ...this.marks.map(({label}) => ['--good', label] as const)];
    const key = names.join();
    if (key !== this.named) fill(this.keys, ...names.map(([color, name]) => h('span', {}, swatch(color), name)));
    this.named = key;
  }

  private largest(): number { return this.lines.reduce((max, {values}) => values.reduce<number>((a, b) => Math.max(a, b ?? 0), max), 0); }

  private create(size: {width: number; height: number}): uPlot.Options {
    const {x, y, sync} = this.options;
    const tick = y?.tick ?? roundDuration;
    return {
      ...size,
      padding: [10, 26, 0, 0],
      legend: {show: false},
      cursor: {
        y: false, drag: {x: false, y: false}, points: {size: 7},
        ...(sync ? {sync: {key: sync, setSeries: false}} : {}),
      },
      scales: {
        x: x ? {time: false, ...(x.log ? {distr: 3 as const, log: x.log} : {}), ...(x.log ? {} : {range: (_, min, max) => [min > 0 && min < max / 4 ? 0 : min - (max - min || max) * 0.04, max + (max - min || max) * 0.02]})} : {time: true},
        y: this.logarithmic ? {distr: 3, log: 10, clamp: (_, __, min) => min, range: (_, min, max) => [roundBelow(Math.max(min, 1e-6)), this.top(max)]}
          : {range: (_, __, max) => [0, y?.max ?? this.top(max)]},
      },
      axes: [
        x ? axis({size: 24, space: 64, grid: {show: false}, ...(x.log === 10 ? {filter: logTicks} : {}), values: (_, ticks) => ticks.map(value => value === null ? '' : x.tick(value))}) : timeAxis(),
        axis({size: 58, space: 34, ...(this.logarithmic ? {filter: logTicks} : {}), values: (_, ticks) => ticks.map(value => value === null ? '' : tick(value))}),
      ],
      series: [{}, ...this.lines.map((line): uPlot.Series => ({
        label: line.name,
        stroke: () => faded(cssColor(line.color), line.faded),
        width: line.width ?? 1.75,
        ...(line.dash ? {dash: line.dash} : {}),
        ...(line.stepped && uPlot.paths.stepped ? {paths: uPlot.paths.stepped({align: line.stepped})} : {}),
        spanGaps: true,
        points: line.points ? {show: true, size: 6} : {show: (u: uPlot, index: number) => alone(u.data[index] ?? [])},
      }))],
      // Thresholds are below the lines: they must not hide data.
      hooks: {drawAxes: [u => this.drawThresholds(u)], draw: [u => this.drawMarks(u)]},
    };
  }

  /** Returns the upper end of the y axis. A threshold far above the data would flatten it, so it is only named then. */
  private top(max: number): number {
    let top = Number.isFinite(max) && max > 0 ? max : 0;
    for (const {value} of this.thresholds) if (top === 0 || value <= 2.5 * top) top = Math.max(top, value);
    return (top || 1) * 1.08;
  }

  private drawThresholds(u: uPlot): void {
    const {ctx, bbox} = u;
    ctx.save();
    ctx.strokeStyle = cssColor('--bad');
    ctx.lineWidth = devicePixelRatio;
    for (const {value} of this.thresholds) {
      const y = Math.round(u.valToPos(value, 'y', true));
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
    ctx.restore();
  }

  private drawMarks(u: uPlot): void {
    const {ctx, bbox} = u;
    for (const {x} of this.marks) {
      const at = u.valToPos(x, 'x', true);
      if (at < bbox.left || at > bbox.left + bbox.width) continue;
      ctx.save();
      ctx.strokeStyle = cssColor('--good');
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      ctx.restore();
    }
  }
}

/** Keeps the labels 1, 2 and 5 of each decade, or 1 only if there are many decades. */
const logTicks = (_: uPlot, ticks: (number | null)[]) => {
  const decades = Math.log10((ticks.at(-1) ?? 1) / (ticks[0] ?? 1));
  const kept = decades > 2.2 ? [1] : [1, 2, 5];
  return ticks.map(tick => (tick !== null && kept.includes(Math.round(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9))) ? tick : null));
};

/** Reports whether a few values are so large that a linear axis would flatten all others. */
function hasOutlier(lines: Line[]): boolean {
  const values = lines.flatMap(line => line.values).filter(value => typeof value === 'number' && value > 0).sort((a, b) => (a ?? 0) - (b ?? 0));
  return (values.at(-1) ?? 0) > 10 * (values[values.length >> 1] ?? Infinity);
}

const faded = (color: string, fade?: boolean) => (fade ? `${color}30` : color);

/** Reports whether most values have no neighbour, so that a line alone would not show them. */
function alone(values: ArrayLike<number | null | undefined>): boolean {
  let present = 0;
  for (let i = 0; i < values.length; i++) if (values[i] !== null && values[i] !== undefined) present++;
  return present > 0 && present <= 2;
}
