// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Elements are built from text nodes and properties only. No string is ever parsed as
// HTML, so a label value from the wire cannot become markup.

export type Child = Node | string | number | null | undefined | false;

type Attributes = Record<string, string | number | boolean | undefined | ((event: Event) => void)>;

/** Creates an element. Attributes that start with "on" are event listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** Sets text only if it differs, so that a screen reader and the layout see no change. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Lets the browser paint and react to input between two pieces of work. */
export const pause = (): Promise<void> => new Promise(resolve => { setTimeout(resolve); });

/** Creates the line, or the box, that shows a colour of the theme in a legend. */
export function swatch(color: string, shape: 'line' | 'box' = 'line'): HTMLElement {
  const element = h('span', {class: shape === 'box' ? 'swatch box' : 'swatch', 'aria-hidden': 'true'});
  element.style.background = `var(${color})`;
  return element;
}

export function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
