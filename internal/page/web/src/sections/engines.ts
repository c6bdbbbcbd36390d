// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Engine, type Maybe, type Now, apiURL} from '../api';
import {fill, h, setText} from '../dom';
import {type IconName, icon} from '../icons';
import type {Level} from '../levels';
import {count, duration, missing, time} from '../units';

const states: Record<string, [Level, IconName]> = {
  stuck: ['bad', 'cross'], down: ['bad', 'cross'], slow: ['warn', 'warning'], unknown: ['none', 'minus'], producing: ['good', 'check'], idle: ['none', 'dot'],
};
const blank: Engine = {engine: missing, state: missing, reason: missing, since: null, open: 0, last_token_age: null, bound: null};
const columns = ['Why', 'Since', 'Open requests', 'Last token', 'Bound'];
const texts = ({since, reason, open, last_token_age: age, bound}: Engine): string[] =>
  [reason, since === null ? missing : time(since), count(open), age === null ? missing : `${duration(age)} ago`, duration(bound)];

/** Says of each engine whether it produces tokens. Hidden if no engine is known. */
export class Engines {
  private drawn = '';
  private body = h('tbody');
  private text = h('span');
  private more = h('a', {href: apiURL('engines')}, apiURL('engines'));
  readonly element = h('div', {class: 'card scroll', id: 'engines', hidden: true, tabindex: 0, role: 'region', 'aria-label': 'Engines'},
    h('div', {class: 'title'}, h('h3', {}, 'Engines'), h('span', {class: 'muted'}, this.text, this.more)),
    h('table', {}, h('thead', {}, h('tr', {}, ...['State', 'Engine', ...columns].map(name => h('th', {scope: 'col'}, name)))), this.body));

  /** Reserves the room of the rows before the first ones arrive. */
  reserve(total: Maybe): void {
    if (this.drawn === '' && total) this.update({engines: Array<Engine>(Math.min(total, 20)).fill(blank), engines_total: total});
  }

  update({engines, engines_total: total}: Pick<Now, 'engines' | 'engines_total'>): void {
    this.element.hidden = !engines?.length;
    if (!engines?.length) return;
    const more = (total ?? 0) - engines.length;
    setText(this.text, `whether each produces tokens${more > 0 ? ` · the ${engines.length} that need attention first; ${count(more)} more are in ` : ''}`);
    this.more.hidden = more <= 0;
    // While only numbers change, rows stay: a selection of text needs them.
    const key = JSON.stringify(engines.map(({engine, state}) => [engine, state]));
    if (key !== this.drawn) fill(this.body, ...engines.map(row));
    this.drawn = key;
    engines.forEach((engine, row) => texts(engine).forEach((text, column) => {
      const cell = this.body.rows[row]?.cells[column + 2];
      if (cell) setText(cell, text);
    }));
  }
}

function row({engine, state}: Engine): HTMLElement {
  const [level, name] = states[state] ?? ['none', 'minus'];
  return h('tr', {}, h('td', {}, h('span', {class: 'verdict', 'data-level': level}, icon(name), state)), h('td', {}, h('bdi', {}, engine)), ...columns.map(() => h('td')));
}
