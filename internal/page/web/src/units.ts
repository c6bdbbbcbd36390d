// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Every number on the page is formatted here, with three significant digits.

export const missing = '–';

type Maybe = number | null | undefined;

const isMissing = (value: Maybe): value is null | undefined => value === null || value === undefined || !Number.isFinite(value);

/** Formats a number with as many significant digits, and all digits before the point. */
export function digits(value: number, significant = 3): string {
  if (value === 0) return '0';
  const rounded = Math.abs(Number(value.toPrecision(significant)));
  const decimals = Math.max(0, significant - 1 - Math.floor(Math.log10(rounded) + 1e-12));
  const places = Math.min(decimals, 4);
  return value.toLocaleString('en-US', {minimumFractionDigits: places, maximumFractionDigits: places}).replace('-', '−');
}

/** Formats seconds as ms below one second, as s up to 10 minutes, then as min or h. */
export function duration(seconds: Maybe): string {
  if (isMissing(seconds)) return missing;
  if (seconds === 0) return '0 s';
  if (Math.abs(seconds) < 0.9995) return `${digits(seconds * 1000)} ms`;
  if (Math.abs(seconds) < 600) return `${digits(seconds)} s`;
  if (Math.abs(seconds) < 7200) return `${digits(seconds / 60)} min`;
  return `${digits(seconds / 3600)} h`;
}

/** Formats the inverse of a time per output token. It is empty without one. */
export const speed = (seconds: Maybe): string => (isMissing(seconds) || seconds <= 0 ? '' : `${amount(1 / seconds)} tok/s`);

/** Formats a time per output token, with its inverse as the second number. */
export const pace = (seconds: Maybe): string => [duration(seconds), speed(seconds)].filter(Boolean).join(' · ');

/** Formats a round duration, such as a tick of an axis or a setting: as short as possible. */
export function roundDuration(seconds: number): string {
  const short = (value: number) => String(Number(value.toPrecision(3)));
  if (seconds === 0) return '0';
  if (seconds < 0.001) return `${short(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  return seconds < 120 ? `${short(seconds)} s` : `${short(seconds / 60)} min`;
}

/** Returns the largest 1, 2 or 5 times a power of ten that is at most a value. uPlot never ends its ticks from others. */
export function roundBelow(value: number): number {
  const exponent = Math.floor(Math.log10(value) + 1e-12);
  const digit = [5, 2, 1].find(candidate => candidate * 10 ** exponent <= value * (1 + 1e-9)) ?? 1;
  return Number(`${digit}e${exponent}`);
}

/** Marks a number that is an estimate or a bound. */
export const about = (text: string, estimated: boolean): string => (estimated && text !== missing ? `≈ ${text}` : text);

export function count(value: Maybe): string {
  if (isMissing(value)) return missing;
  if (Math.abs(value) < 10_000) return value.toLocaleString('en-US', {maximumFractionDigits: 0});
  if (Math.abs(value) < 1e6) return `${digits(value / 1e3)}k`;
  return Math.abs(value) < 1e9 ? `${digits(value / 1e6)}M` : `${digits(value / 1e9)}G`;
}

/** Formats a count with all digits, and what it counts. */
export const plural = (value: number, noun: string): string => `${value.toLocaleString('en-US')} ${noun}${value === 1 ? '' : 's'}`;

/** Formats a tick of an axis of loads or lengths. */
export function roundNumber(value: number): string {
  if (value >= 100_000) return count(value);
  return String(value < 1000 ? Number(value.toPrecision(3)) : Math.round(value));
}

/** Formats a rate or a mean. */
export function amount(value: Maybe): string {
  if (isMissing(value)) return missing;
  return Math.abs(value) >= 1000 ? count(Math.round(value)) : digits(value);
}

/** Formats a share of one. Shares near 1 keep the digits in which they differ from 1. */
export function percent(share: Maybe): string {
  if (isMissing(share)) return missing;
  const value = share * 100;
  if (value === 0 || value === 100) return `${value}%`;
  if (value > 99.9 && value < 100) return `${Math.min(value, 99.999).toFixed(3).replace(/0+$/, '')}%`;
  return `${digits(value)}%`;
}

/** Formats a share that is a setting: as short as possible. */
export const roundPercent = (share: number): string => `${Number((share * 100).toPrecision(3))}%`;

const full = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit'});
const clock = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const day = new Intl.DateTimeFormat('en-GB', {weekday: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit'});

let present = (): Date => new Date();

/** Makes a Unix time in seconds the present. */
export function standAt(unix: number): void { present = () => new Date(unix * 1000); }

const week = 6 * 86_400_000; // ms; after it, weekdays come again

/** Formats a Unix time in seconds as local time, with the weekday if it is not of today, and with the date if it is older. */
export function time(unix: number): string {
  const [date, now] = [new Date(unix * 1000), present()];
  if (date.toDateString() === now.toDateString()) return clock.format(date);
  return (now.getTime() - date.getTime() < week ? day : full).format(date);
}

/** Formats a range of Unix times in seconds, with one weekday if both are of the same day. */
export function span(from: number, to: number): string {
  const [first, last] = [new Date(from * 1000), new Date(to * 1000)];
  return `${time(from)} to ${first.toDateString() === last.toDateString() ? clock.format(last) : time(to)}`;
}

/** Formats such a range with its dates. */
export function dates(from: number, to: number): string {
  const [first, last] = [new Date(from * 1000), new Date(to * 1000)];
  return `${full.format(first)} to ${(first.toDateString() === last.toDateString() ? clock : full).format(last)}`;
}
