// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {h} from '../dom';
import {onTheme} from '../theme';

/** Returns a canvas that is drawn in CSS pixels, again after each change of its size or of the theme. */
export function drawing(draw: (ctx: CanvasRenderingContext2D, width: number, height: number) => void, label = ''): {element: HTMLCanvasElement; draw: () => void} {
  const element = h('canvas', label ? {role: 'img', 'aria-label': label} : {'aria-hidden': 'true'});
  const redraw = () => {
    const {clientWidth: width, clientHeight: height} = element;
    if (!element.isConnected || width === 0) return;
    const ratio = devicePixelRatio;
    const [w, tall] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (element.width !== w || element.height !== tall) [element.width, element.height] = [w, tall];
    const ctx = element.getContext('2d');
    if (!ctx) return;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    draw(ctx, width, height);
  };
  new ResizeObserver(redraw).observe(element);
  onTheme(() => { if (element.isConnected) redraw(); });
  return {element, draw: redraw};
}
