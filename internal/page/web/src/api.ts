// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {answer, report} from './report';

// The shapes of /api/v1, as openapi.yaml has them. null means unknown, never zero.

export type Maybe = number | null;
/** A duration from 1m to 7d, such as 90m. */
export type Range = string;
export type Percentile = 'p50' | 'p95' | 'p99';
export const indicators = ['time_to_first_token', 'time_per_output_token', 'inter_token_latency', 'request_duration'] as const;
export type Indicator = typeof indicators[number];
export type Phase = 'network' | 'queue' | 'prefill' | 'transfer' | 'decode';

export interface SLO { slo: string; objective: Maybe; window_seconds: Maybe; indicator: string | null; threshold: Maybe }

/** Where a receiver of this Collector takes requests. */
export interface Endpoint { receiver: 'token_stream' | 'token_tap'; url: string; auth: boolean }

/** A pair that has a verdict, or begins with the candidate's first request. */
export interface Pair { dimension: string; baseline: string; candidate: string; vantage?: string; slo?: string; indicator?: string; percentile?: number; tolerance?: number }

export interface Meta {
  version: string;
  time: number;
  dimensions: {name: string; values: string[]; more: number}[];
  vantages: string[];
  outcomes: string[];
  split_by: string;
  slos: SLO[];
  pairs: Pair[];
  series: {held: number; limit: number};
  history: {since: Maybe; memory_bytes: number; max_memory_bytes: number; coarsened: boolean};
  timelines: {kept: boolean | null; setting: string};
  trace_link: string | null;
  endpoints: Endpoint[];
  engines_total: Maybe;
}

export interface Interval { estimate: Maybe; lower: Maybe; upper: Maybe }

export interface Arm extends Interval { requests: number; bad: number; replicas: number }

export interface Comparison {
  verdict: 'pass' | 'fail' | 'undecided'; reason: string; hint: string;
  baseline: Arm; candidate: Arm; ratio: Interval; percentile_ratio: Interval | null;
  alpha: number; tolerance: number; since: Maybe; windows: number; vantage: string | null;
}

export interface Unmeasured { indicator: string; reason: string; requests: number; share: number }

/** The vantage whose requests an answer has, or the sum over all; outermost first, those of each in the range. */
export interface Seen { shown: string; sum: boolean; requests: {vantage: string; requests: number}[] }

export interface SLONow {
  slo: string; vantage: string; objective: Maybe; indicator: string | null; threshold: Maybe;
  good: number; bad: number; not_eligible: number; judged: Maybe; attainment: Maybe;
  burn_rates: {window_seconds: number; rate: Maybe}[];
  budget_remaining: Maybe; budget_window_seconds: Maybe;
}

export interface Summary {
  count: number; mean: number; min: number; max: number; p50: number; p95: number; p99: number;
  cdf?: {at: number[]; share: number[]};
}

export type Indicators = Partial<Record<Indicator | Phase, Summary>>;

/** An open stream without a token for a while. */
export interface SilentStream {
  dimensions: Record<string, string>; model: string | null; replica: string | null; vantage: string; phase: string; silent: number; age: number; tokens: number;
}

/** An engine, and whether it produces tokens. */
export interface Engine { engine: string; state: string; reason: string; since: Maybe; open: number; last_token_age: Maybe; bound: Maybe }

/** A reason to doubt the numbers: what is wrong, and after the first semicolon the remedy. */
export interface Doubt { message: string; about: string; since: number }

export interface Now {
  time: number; range: Range; from: number; to: number; vantage: Seen; window_seconds: number;
  requests_per_second: Maybe; output_tokens_per_second: Maybe; input_tokens_per_second: Maybe;
  in_flight: Maybe;
  open_streams: Maybe;
  waiting_streams: Maybe;
  silent_streams: Maybe;
  longest_silent: SilentStream[] | null;
  engines: Engine[] | null;
  engines_total: Maybe;
  /** Requests with the outcome error or incomplete, by cause. */
  failed: Record<string, number>;
  requests: Record<string, number>;
  tokens: Record<string, number>;
  stalls: {count: number; seconds: number};
  unmeasured: Unmeasured[];
  indicators: Indicators;
  slos: SLONow[];
  series: {held: number; limit: number};
  doubts: Doubt[];
}

export interface Standout { by: string; value: string; requests: number; share_of_bad: number; share_of_all: number }
export interface Worst {
  range: Range; indicators: Partial<Record<Indicator, Standout & {p95: number}>>; slos: Record<string, Standout & {attainment: number}>;
}

export interface Rates { requests_per_second: Maybe[]; output_tokens_per_second: Maybe[]; in_flight: Maybe[] }

export interface TrendGroup extends Rates {
  value: string; requests: number;
  indicators: Partial<Record<Indicator, Record<Percentile, Maybe[]>>>;
}

export interface Trends {
  range: Range; step_seconds: number; times: number[]; by: string; groups_total: number; groups: TrendGroup[]; others: TrendGroup | null; total?: Rates;
}

export interface Group { value: string; requests: number; output_tokens: number; indicators: Indicators }
export interface Distributions { range: Range; by: string; groups_total: number; groups: Group[]; others: Group | null }

export interface Heatmap { range: Range; step_seconds: number; times: number[]; indicator: string; bounds: number[]; counts: number[][] }

export interface LoadPoint {
  load: number; from: number; to: number; slots: number; requests: number;
  time_to_first_token: Summary | null; time_per_output_token: Summary | null;
  slos: {slo: string; good: number; bad: number; attainment: Maybe}[];
}
export interface LoadCurve { points: LoadPoint[]; slos: {slo: string; objective: number; largest_load: Maybe}[] }
export interface LoadCapacity {
  slo: string; reason: 'too_few' | 'knee_not_seen' | 'mix_changed' | 'several_series' | null;
  limit: {requests: number; output_tokens: number; prompt_tokens: number} | null; room: Maybe; stale: boolean;
}
export interface Load { range: Range; slot_seconds: number; in_flight: LoadCurve; output_tokens_per_second: LoadCurve; capacity: LoadCapacity[] }

export interface Prompts {
  range: Range; cached_from: Maybe;
  buckets: {from_tokens: number; to_tokens: Maybe; uncached: Summary | null; cached: Summary | null; together: Summary | null; time_per_output_token: Summary | null}[];
}

export interface RequestNumbers {
  id: string; time: number; dimensions: Record<string, string>; vantage: string; outcome: string;
  trace_id: string | null; span_id: string | null; trace_link: string | null; reason: string | null;
  error_type: string | null; status: string | null; replica: string | null; source: string | null; estimated: string[];
  request_duration: Maybe; time_to_first_token: Maybe; time_per_output_token: Maybe;
  queue: Maybe; prefill: Maybe; decode: Maybe; network: Maybe; transfer: Maybe;
  input_tokens: Maybe; cached_input_tokens: Maybe; output_tokens: Maybe;
  stalls: Maybe; stall_duration: Maybe; largest_gap: Maybe; open_tail: Maybe;
  time_per_token: {position: string; mean: number}[]; slos_breached: string[]; has_strip: boolean;
}
export interface Requests { range: Range; slowest: string; requests: RequestNumbers[] }
export interface Strip { at: number[]; tokens: number[]; channels: string[]; stalled: number[]; dropped: number }
export interface RequestDetail { request: RequestNumbers; strip: Strip | null }

/** An answer other than 200. The message and the remedy are the server's. */
export class ApiError extends Error {
  constructor(readonly status: number, message: string, readonly remedy: string) { super(message); }
}

export const apiURL = (path: string, query?: URLSearchParams) => `api/v1/${path}${query && query.size ? `?${query}` : ''}`;

/** Reads JSON from the API, or the report. A connection that fails throws a TypeError, as fetch does. */
export async function read<T>(path: string, query?: URLSearchParams, signal?: AbortSignal, method: 'GET' | 'POST' = 'GET'): Promise<T> {
  if (report) {
    const found = answer(path, query);
    return found === undefined ? Promise.reject(new ApiError(404, 'The report does not have this selection', 'open it without filters')) : found as T;
  }
  const response = await fetch(apiURL(path, query), signal ? {method, signal} : {method});
  if (response.ok) return await response.json() as T;
  const text = await response.text();
  try {
    const {error} = JSON.parse(text) as {error: {message: string; remedy: string}};
    return Promise.reject(new ApiError(response.status, error.message, error.remedy));
  } catch {
    return Promise.reject(new ApiError(response.status, `${response.status} ${response.statusText}`,
      response.status === 401 || response.status === 403 ? 'log in as the Collector\'s auth extension asks, then reload' : 'see the log of the Collector'));
  }
}
