// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {fill, h} from './dom';

export interface Option { value: string; name: string }

/** Returns buttons of which one is pressed. Values that are not offered are hidden, and so are all if only one is. */
export function segments(label: string, options: Option[], current: () => string, choose: (value: string) => void, offered?: (value: string) => boolean): {element: HTMLElement; update: () => void} {
  const buttons = options.map(({value, name}) => h('button', {type: 'button', 'data-value': value, onclick: () => choose(value)}, name));
  const element = h('div', {class: 'segments', role: 'group', 'aria-label': label}, ...buttons);
  const update = () => {
    for (const button of buttons) {
      const {value = ''} = button.dataset;
      button.ariaPressed = String(value === current());
      button.hidden = offered?.(value) === false;
    }
    element.hidden = buttons.filter(({hidden}) => !hidden).length < 2;
  };
  buttons.forEach(button => { button.ariaPressed = String(button.dataset.value === current()); });
  return {element, update};
}

/** Returns a labelled select. Options are replaced only if they differ. */
export function select(label: string, choose: (value: string) => void): {element: HTMLElement; update: (options: Option[], current: string) => void} {
  const control = h('select', {onchange: () => choose(control.value)});
  const element = h('label', {class: 'field'}, h('span', {}, label), control);
  let key = '';
  return {element, update(options, current) {
    const next = JSON.stringify(options);
    if (next !== key) {
      key = next;
      fill(control, ...options.map(({value, name}) => h('option', {value}, name)));
    }
    if (control.value !== current) control.value = current;
  }};
}

/** Copies text, and says so on the button for a moment. */
export function copyButton(text: () => string, name = 'Copy'): HTMLElement {
  const button = h('button', {type: 'button', class: 'button', onclick: () => void copy()}, name);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select and copy by hand';
    }
    setTimeout(() => { button.textContent = name; }, 2000);
  };
  return button;
}
