// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {RequestNumbers, Strip} from '../api';
import {cssColor} from '../dom';
import {duration} from '../units';
import {drawing} from './canvas';

/**
 * Draws a request from its start: queue, prefill, transfer, one tick for each chunk, stalls as hatched blocks. So is the wait at
 * the end of a request that failed and, up to the edge, that of one whose end is not known.
 */
export function stripCanvas(request: RequestNumbers, strip: Strip | null, span: number): HTMLCanvasElement {
  return drawing((ctx, width, height) => {
    const x = (seconds: number) => seconds / span * width;
    const middle = Math.round(height * 0.28);
    const block = (color: string, from: number, to: number) => {
      ctx.fillStyle = cssColor(color);
      ctx.fillRect(x(from), middle, Math.max(1, x(to) - x(from) - 1), height - 2 * middle);
    };
    ctx.fillStyle = cssColor('--sunken');
    const end = request.request_duration ?? 0;
    ctx.fillRect(0, middle, x(end), height - 2 * middle);
    if (request.open_tail) hatch(ctx, x(end - request.open_tail), x(end), middle, height - 2 * middle);
    if (isOpen(request)) hatch(ctx, x(end), width, middle, height - 2 * middle);
    const first = strip?.at[0] ?? request.time_to_first_token ?? 0;
    const queue = Math.min(request.queue ?? 0, first);
    if (queue > 0) block('--phase-queue', 0, queue);
    const computed = first - transferBefore(request, first - queue);
    if (computed > queue) block('--phase-prefill', queue, computed);
    if (first > computed) block('--phase-transfer', computed, first);
    if (!strip) {
      if (request.decode) block('--phase-decode', first, first + request.decode);
      return;
    }
    for (const index of strip.stalled) hatch(ctx, x(strip.at[index - 1] ?? 0), x(strip.at[index] ?? 0), middle, height - 2 * middle);
    ctx.fillStyle = cssColor('--phase-decode');
    const tick = Math.max(0.6, Math.min(1.5, width / (strip.at.length * 2)));
    for (const at of strip.at) ctx.fillRect(x(at) - tick / 2, 2, tick, height - 4);
  }, describe(request, strip)).element;
}

/** Returns the transfer between two engines, if it fits before the first token. An engine that only does prefill sends the cache afterwards. */
const transferBefore = ({prefill, transfer}: RequestNumbers, afterQueue: number): number => (transfer && (prefill ?? 0) + transfer <= afterQueue ? transfer : 0);

/** Reports whether a request has no known end: it waited for longer than its duration says. */
export const isOpen = (request: RequestNumbers): boolean => request.outcome === 'incomplete' && !request.open_tail;

function hatch(ctx: CanvasRenderingContext2D, from: number, to: number, top: number, height: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, top, Math.max(2, to - from), height);
  ctx.clip();
  ctx.fillStyle = cssColor('--bad-fill');
  ctx.fillRect(from, top, Math.max(2, to - from), height);
  ctx.strokeStyle = cssColor('--bad');
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  for (let x = from - height; x < to + height; x += 5) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.rect(from, top, Math.max(2, to - from), height);
  ctx.stroke();
  ctx.restore();
}

function describe(request: RequestNumbers, strip: Strip | null): string {
  const parts = [];
  if (request.queue) parts.push(`queue ${duration(request.queue)}`);
  if (request.prefill) parts.push(`prefill ${duration(request.prefill)}`);
  if (request.transfer) parts.push(`transfer ${duration(request.transfer)}`);
  if (strip) parts.push(`${strip.at.length} chunks`, `${strip.stalled.length} stalls`);
  if (request.open_tail) parts.push(`no token for the last ${duration(request.open_tail)}`);
  if (isOpen(request)) parts.push('no end');
  return parts.join(', ') || 'no timeline';
}
