// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Meta, Seen} from '../api';
import {fill, h, setText} from '../dom';
import {valueName} from '../terms';
import {count} from '../units';
import type {View} from '../view';

/** The value of the filter that adds up all vantages. */
export const sum = 'all';

export const vantageName = (value: string): string => (value === sum ? 'All (sum)' : valueName(value));

/** Reports whether a request may have been seen by several vantages. */
export const severalVantages = ({vantages}: Meta): boolean => vantages.filter(Boolean).length > 1;

/** Says which vantage the numbers are of, or that they are a sum, and offers the others. Hidden if there is one vantage. */
export class Vantages {
  private text = h('span');
  private choices = h('span', {class: 'choices'});
  private buttons = new Map<string, HTMLElement>();
  readonly element = h('p', {class: 'vantages', hidden: true, title: 'Outermost: the first of client, gateway, server and engine with at least half as many requests as the one that has most'}, this.text, this.choices);

  constructor(private view: View) {}

  update(seen: Seen): void {
    const known = seen.requests.filter(({vantage}) => vantage !== '');
    this.element.hidden = known.length < 2;
    if (known.length < 2) return;
    this.element.classList.toggle('banner', seen.sum);
    const own = known.find(({vantage}) => vantage === seen.shown);
    setText(this.text, seen.sum ? `Sum over ${known.length} vantages: a request counts once for each vantage that saw it. Show one:`
      : `As seen by ${seen.shown}: ${count(own?.requests ?? 0)} requests. Also seen by:`);
    const others = known.filter(({vantage}) => vantage !== seen.shown && this.view.offersFilter('vantage', vantage)).map(({vantage, requests}) => [vantage, `${vantage} (${count(requests)})`] as const);
    this.offer(seen.sum || !this.view.offersFilter('vantage', sum) ? others : [...others, [sum, vantageName(sum)]]);
  }

  /** Keeps the buttons while only counts change, so that they keep the focus. */
  private offer(choices: (readonly [string, string])[]): void {
    if (choices.map(([value]) => value).join() !== [...this.buttons.keys()].join()) {
      this.buttons = new Map(choices.map(([value]) => [value, h('button', {type: 'button', class: 'button', onclick: () => this.view.setFilter('vantage', value)})]));
      fill(this.choices, ...this.buttons.values());
    }
    for (const [value, text] of choices) {
      const button = this.buttons.get(value);
      if (button) setText(button, text);
    }
  }
}
