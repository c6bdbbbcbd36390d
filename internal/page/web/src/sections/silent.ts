// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Now, SilentStream} from '../api';
import {type Child, fill, h, setText} from '../dom';
import {dimensionName, valueName} from '../terms';
import {count, duration} from '../units';
import type {View} from '../view';

const modelDimension = 'gen_ai.request.model';
const phases: Record<string, string> = {first_token: 'no token yet', decode: 'after tokens'};
const numbers = ({silent, age, tokens}: SilentStream): string[] => [duration(silent), duration(age), count(tokens)];

/** Lists the open streams that have been silent for longest: what hangs now. Hidden if none is. */
export class SilentStreams {
  private drawn = '';
  private body = h('tbody');
  private text = h('span');
  readonly element = h('div', {class: 'card scroll', id: 'silent', hidden: true, tabindex: 0, role: 'region', 'aria-label': 'Silent streams'},
    h('div', {class: 'title'}, h('h3', {}, 'Silent streams'), h('span', {class: 'muted'}, this.text)),
    h('table', {}, h('thead', {}, h('tr', {}, ...['Silent for', 'Age', 'Tokens'].map(name => h('th', {scope: 'col', class: 'number'}, name)),
      ...['Phase', 'Model', 'Replica', 'Dimensions', 'Vantage'].map(name => h('th', {scope: 'col'}, name)))), this.body));

  constructor(private view: View) {}

  update({longest_silent: longest, waiting_streams: waiting, silent_streams: silent}: Now): void {
    this.element.hidden = !longest?.length;
    if (!longest?.length) return;
    const all = (waiting ?? 0) + (silent ?? 0);
    setText(this.text, `open, without a token for over 15 s${all > longest.length ? ` · the ${longest.length} of ${count(all)} that are silent for longest` : ''}`);
    // While only numbers change, buttons stay: a click and the focus need them.
    const key = JSON.stringify(longest.map(({silent, age, tokens, ...rest}) => rest));
    if (key !== this.drawn) fill(this.body, ...longest.map(stream => this.row(stream)));
    this.drawn = key;
    longest.forEach((stream, row) => numbers(stream).forEach((text, column) => {
      const cell = this.body.rows[row]?.cells[column];
      if (cell) setText(cell, text);
    }));
  }

  private row({phase, model, replica, vantage, dimensions}: SilentStream): HTMLElement {
    const [byReplica] = Object.entries(dimensions).find(([, value]) => value === replica) ?? [];
    const others = Object.entries(dimensions).filter(([name]) => name !== modelDimension && name !== byReplica);
    return h('tr', {}, ...[0, 1, 2].map(() => h('td', {class: 'number'})), h('td', {}, phases[phase] ?? phase),
      h('td', {}, modelDimension in dimensions ? this.only(modelDimension, dimensions[modelDimension] ?? '') : h('bdi', {}, model ?? '')),
      h('td', {}, byReplica ? this.only(byReplica, replica ?? '') : h('bdi', {}, replica ?? '')),
      h('td', {}, ...others.flatMap(([name, value], i): Child[] => [`${i > 0 ? ' · ' : ''}${dimensionName(name)} `, this.only(name, value)])),
      h('td', {}, vantage));
  }

  /** Returns a value that shows only its group when it is clicked. */
  private only(name: string, value: string): HTMLElement {
    return h('button', {type: 'button', class: 'only', title: `Show only ${dimensionName(name)} ${valueName(value)}`, onclick: () => this.view.setFilter(name, value)}, h('bdi', {}, valueName(value)));
  }
}
