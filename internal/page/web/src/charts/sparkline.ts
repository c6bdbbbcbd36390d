// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {cssColor} from '../dom';
import {drawing} from './canvas';

/** A line without axes: the recent shape of the number above it. */
export function sparkline(): {element: HTMLCanvasElement; update: (values: (number | null)[]) => void} {
  let values: (number | null)[] = [];
  const {element, draw} = drawing((ctx, width, height) => {
    const max = Math.max(...values.map(value => value ?? 0));
    if (values.length < 2 || !(max > 0)) return;
    const x = (i: number) => i / (values.length - 1) * (width - 4) + 1;
    const y = (value: number) => height - 2 - value / max * (height - 5);
    const path = new Path2D();
    let last: [number, number] | null = null;
    values.forEach((value, i) => {
      if (value === null) return;
      if (last) path.lineTo(x(i), y(value));
      else path.moveTo(x(i), y(value));
      last = [x(i), y(value)];
    });
    ctx.strokeStyle = cssColor('--accent');
    ctx.lineWidth = 1.5;
    ctx.lineJoin = 'round';
    ctx.stroke(path);
    if (!last) return;
    ctx.fillStyle = cssColor('--accent');
    ctx.beginPath();
    ctx.arc(last[0], last[1], 2.2, 0, 7);
    ctx.fill();
  });
  return {element, update: next => { values = next; draw(); }};
}
