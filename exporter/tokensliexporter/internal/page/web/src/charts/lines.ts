// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import uPlot from 'uplot';
import {cssColor} from '../dom';
import {roundDuration} from '../units';
import {Plot, axis, drawLabel, drawThreshold, timeAxis} from './plot';

export interface Line { name: string; color: string; dash?: number[]; width?: number; values: (number | null | undefined)[]; points?: boolean; faded?: boolean; stepped?: boolean }
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

  constructor(private options: LinesOptions) {
    this.plot = new Plot(size => this.create(size), options.label, index => this.options.onCursor?.(index), options.tall);
  }

  get element(): HTMLElement { return this.plot.element; }

  update(x: number[], lines: Line[], more: {thresholds?: Threshold[]; marks?: Mark[]; describe?: string} = {}): void {
    this.lines = lines;
    this.thresholds = more.thresholds ?? [];
    this.marks = more.marks ?? [];
    if (more.describe) this.plot.describe(more.describe);
    const key = lines.map(line => [line.name, line.color, line.dash, line.width, line.faded]).join('|') || 'none';
    this.plot.update(key, {x, lines: lines.map(line => line.values)});
  }

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
        y: {range: (_, __, max) => [0, y?.max ?? this.top(max)]},
      },
      axes: [
        x ? axis({size: 24, space: 64, grid: {show: false}, ...(x.log === 10 ? {filter: logTicks} : {}), values: (_, ticks) => ticks.map(value => value === null ? '' : x.tick(value))}) : timeAxis(),
        axis({size: 58, space: 34, values: (_, ticks) => ticks.map(tick)}),
      ],
      series: [{}, ...this.lines.map((line): uPlot.Series => ({
        label: line.name,
        stroke: () => faded(cssColor(line.color), line.faded),
        width: line.width ?? 1.75,
        ...(line.dash ? {dash: line.dash} : {}),
        ...(line.stepped && uPlot.paths.stepped ? {paths: uPlot.paths.stepped({align: -1})} : {}),
        spanGaps: true,
        points: line.points ? {show: true, size: 6} : {show: (u: uPlot, index: number) => alone(u.data[index] ?? [])},
      }))],
      // Thresholds are below the lines: a label must not hide data.
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
    for (const {label, value} of this.thresholds) drawThreshold(u, value, label);
  }

  private drawMarks(u: uPlot): void {
    const {ctx, bbox} = u;
    for (const {label, x} of this.marks) {
      const at = u.valToPos(x, 'x', true);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = cssColor('--good');
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      const left = at > bbox.left + bbox.width / 2;
      drawLabel(u, label, at + (left ? -5 : 5) * devicePixelRatio, bbox.top + 26 * devicePixelRatio, left ? 'right' : 'left');
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

const faded = (color: string, fade?: boolean) => (fade ? `${color}30` : color);

/** Reports whether most values have no neighbour, so that a line alone would not show them. */
function alone(values: ArrayLike<number | null | undefined>): boolean {
  let present = 0;
  for (let i = 0; i < values.length; i++) if (values[i] !== null && values[i] !== undefined) present++;
  return present > 0 && present <= 2;
}
