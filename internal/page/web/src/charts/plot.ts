// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import uPlot from 'uplot';
import {cssColor, h} from '../dom';
import {onTheme} from '../theme';

export interface Data { x: number[]; lines: (number | null | undefined)[][] }

/**
 * A uPlot chart that follows the size of its host and the theme, and has a crosshair that
 * arrow keys move. uPlot is created again only if `key` or the theme changes, otherwise data
 * is replaced. The crosshair stays in either case.
 */
export class Plot {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private key = '';
  private data: uPlot.AlignedData = [[]];

  constructor(private options: (size: {width: number; height: number}) => uPlot.Options, label: string, private onCursor: (index: number | null) => void, tall = false) {
    this.element = h('div', {class: tall ? 'plot tall' : 'plot', tabindex: 0, role: 'img', 'aria-label': label,
      onkeydown: event => this.move(event as KeyboardEvent), onblur: () => this.setCursor(null)});
    new ResizeObserver(() => this.resize()).observe(this.element);
    onTheme(() => this.rebuild());
  }

  describe(text: string): void { if (this.element.ariaLabel !== text) this.element.ariaLabel = text; }

  update(key: string, data: Data): void {
    this.data = [data.x, ...data.lines];
    if (this.plot && key === this.key) {
      this.plot.setData(this.data);
      return;
    }
    this.key = key;
    this.rebuild();
  }

  private rebuild(): void {
    if (!this.key) return;
    const {left = -10, top = -10} = this.plot?.cursor ?? {}; // outside: no crosshair
    this.plot?.destroy();
    this.plot = null;
    const {clientWidth: width, clientHeight: height} = this.element;
    if (width === 0) return; // resize builds it
    const options = this.options({width, height});
    options.cursor = {...options.cursor, left, top};
    options.hooks = {...options.hooks, setCursor: [u => this.onCursor(u.cursor.idx ?? null)]};
    this.plot = new uPlot(options, this.data, this.element);
  }

  private resize(): void {
    const {clientWidth: width, clientHeight: height} = this.element;
    if (width === 0) return;
    if (!this.plot) this.rebuild();
    else if (this.plot.width !== width || this.plot.height !== height) this.plot.setSize({width, height});
  }

  private move(event: KeyboardEvent): void {
    const x = this.data[0];
    if (!this.plot || x.length === 0) return;
    const at = this.plot.cursor.idx ?? x.length;
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: x.length - 1, Escape: -1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.setCursor(event.key === 'Escape' ? null : Math.min(x.length - 1, Math.max(0, to)));
  }

  private setCursor(index: number | null): void {
    const value = index === null ? undefined : this.data[0][index];
    const left = value === undefined ? -10 : this.plot?.valToPos(value, 'x') ?? -10;
    // The third argument publishes the position to the charts that share the crosshair.
    (this.plot?.setCursor as ((at: {left: number; top: number}, fire: boolean, publish: boolean) => void) | undefined)?.({left, top: 0}, true, true);
  }
}

const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** Returns the look that all axes share. */
export function axis(more: uPlot.Axis): uPlot.Axis {
  const grid = {stroke: cssColor('--grid'), width: 1};
  return {stroke: cssColor('--muted'), font, grid, ticks: {show: false}, gap: 6, ...more};
}

const two = (value: number) => String(value).padStart(2, '0');

const day = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short'});

/** Returns the axis of local time: hours and minutes, with seconds if ticks are close, or days if they are far apart. */
export function timeAxis(): uPlot.Axis {
  return axis({
    size: 24, space: 70, grid: {show: false},
    values: (_, ticks, __, ___, step) => ticks.map(tick => {
      const date = new Date(tick * 1000);
      if (step >= 86_400) return day.format(date);
      return `${two(date.getHours())}:${two(date.getMinutes())}${step < 60 ? `:${two(date.getSeconds())}` : ''}`;
    }),
  });
}
