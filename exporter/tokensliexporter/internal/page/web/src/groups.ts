// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Meta} from './api';

export const maxGroups = 6; // the colours of the theme that stay apart for everybody

/** Returns what requests are filtered and grouped by, with its values: each dimension, vantage and outcome. */
export const groupings = ({dimensions, vantages, outcomes}: Meta): {name: string; values: string[]}[] =>
  [...dimensions, {name: 'vantage', values: vantages}, {name: 'outcome', values: outcomes}];

/** Gives each group a colour that it keeps while it is shown. */
export class Colors {
  private taken = new Map<string, number>();

  assign(values: string[]): void {
    for (const value of this.taken.keys()) if (!values.includes(value)) this.taken.delete(value);
    for (const value of values) {
      if (this.taken.has(value)) continue;
      const used = new Set(this.taken.values());
      let free = 0;
      while (used.has(free)) free++;
      this.taken.set(value, free);
    }
  }

  knows(value: string): boolean { return this.taken.has(value); }

  of(value: string): string { return `--series-${(this.taken.get(value) ?? 0) % maxGroups + 1}`; }
}
