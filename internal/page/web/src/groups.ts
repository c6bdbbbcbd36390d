// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Meta} from './api';
import {others} from './terms';
import type {View} from './view';

export const maxGroups = 6; // the colours of the theme that stay apart for everybody

/** Returns what requests are filtered and grouped by, with its values: each dimension, vantage and outcome. */
export const groupings = ({dimensions, vantages, outcomes}: Meta): {name: string; values: string[]}[] =>
  [...dimensions, {name: 'vantage', values: vantages}, {name: 'outcome', values: outcomes}];

/** Returns what splits the charts if the user did not choose. */
export const defaultSplit = ({split_by: usual}: Meta): string => usual;

export const splitBy = (view: View, meta: Meta): string => view.get('by') || defaultSplit(meta);

/** Returns the parameters of the API that choose the groups. */
export const split = (view: View, meta: Meta, groups: number, by = splitBy(view, meta), rank = view.get('rank')) => ({by, rank, groups: String(groups)});

/** Returns the groups of an answer, and last those that it leaves out, together. */
export const withOthers = <G extends {value: string}>(answer: {groups: G[]; others: G | null}): G[] =>
  (answer.others ? [...answer.groups, {...answer.others, value: others}] : answer.groups);

const stored = 'tokenpulse-colors';

/**
 * Gives each name a colour that it keeps while it is shown, and over a reload. The name decides which
 * colour that is, unless another name that is shown has it.
 */
export class Colors {
  private taken = new Map<string, number>(JSON.parse(sessionStorage.getItem(stored) ?? '[]') as [string, number][]);

  assign(shown: string[]): void {
    const values = shown.filter(value => value !== others).sort();
    for (const value of this.taken.keys()) if (!values.includes(value)) this.taken.delete(value);
    for (const value of values) {
      if (this.taken.has(value)) continue;
      const used = new Set(this.taken.values());
      let free = preferred(value);
      for (let tries = 1; used.has(free) && tries < maxGroups; tries++) free = (free + 1) % maxGroups;
      this.taken.set(value, free);
    }
    sessionStorage.setItem(stored, JSON.stringify([...this.taken]));
  }

  of(value: string): string { return value === others ? '--muted' : variable(this.index(value)); }

  /** Returns different colours for two names, whether they are shown in other charts or not. */
  pair(a: string, b: string): [string, string] {
    const [first, second] = [this.index(a), this.index(b)];
    return [variable(first), variable(first === second ? second + 1 : second)];
  }

  private index(value: string): number { return this.taken.get(value) ?? preferred(value); }
}

const variable = (index: number) => `--series-${index % maxGroups + 1}`;

const preferred = (name: string): number => [...name].reduce((hash, letter) => (hash * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003, 7) % maxGroups;
