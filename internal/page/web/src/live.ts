// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Now, apiURL, read} from './api';
import {report} from './report';

export type State = 'connecting' | 'live' | 'offline';

const silence = 10_000; // ms without an event after which the connection counts as lost
const retryAfter = 2_000;

/** Live tiles by server-sent events. Reconnects by itself, also after a restart of the Collector. */
export class Live {
  state: State = 'connecting';
  private source: EventSource | null = null;
  private timer = 0;
  private generation = 0;
  private query = new URLSearchParams();

  constructor(private onNow: (now: Now) => void, private onState: (state: State, before: State) => void) {
    // Browsers keep pages for their Back button. Such a page would hold one of the six connections that they open to a server.
    addEventListener('pagehide', () => this.stop());
    addEventListener('pageshow', event => { if (event.persisted) this.open(); });
  }

  /** Starts, or starts again with other filters. A range that has ended is asked for once. */
  connect(query: URLSearchParams): void {
    this.query = query;
    this.open();
  }

  private get ended(): boolean { return report !== null || this.query.has('end'); }

  /** Ends the connection, and returns the number of the next one. */
  private stop(): number {
    this.source?.close();
    clearTimeout(this.timer);
    return ++this.generation;
  }

  private open(): void {
    const generation = this.stop();
    if (this.ended) {
      void this.poll(generation);
      return;
    }
    const source = new EventSource(apiURL('events', this.query));
    this.source = source;
    const failed = () => {
      if (generation !== this.generation) return;
      source.close();
      void this.poll(generation);
    };
    const alive = () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(failed, silence);
    };
    alive();
    source.addEventListener('now', event => {
      if (generation !== this.generation) return;
      alive();
      this.become('live');
      this.onNow(JSON.parse((event as MessageEvent<string>).data) as Now);
    });
    source.addEventListener('error', failed);
  }

  /** Without events, such as at the server's limit of clients, asks for the numbers once, then tries again. */
  private async poll(generation: number): Promise<void> {
    try {
      const now = await read<Now>('now', this.query);
      if (generation !== this.generation) return;
      this.become('live');
      this.onNow(now);
    } catch {
      if (generation !== this.generation) return;
      this.become('offline');
    }
    clearTimeout(this.timer);
    if (this.state === 'live' && this.ended) return;
    this.timer = window.setTimeout(() => this.open(), retryAfter);
  }

  private become(state: State): void {
    if (state === this.state) return;
    const before = this.state;
    this.state = state;
    this.onState(state, before);
  }
}
