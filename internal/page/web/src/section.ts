// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {ApiError, type Range} from './api';
import {type Child, fill, h} from './dom';

/** A part of the page that loads its own numbers. */
export interface Section {
  element: HTMLElement;
  load(signal: AbortSignal): Promise<void>;
}

/** Returns a section with a heading, one sentence, controls and a body. */
export function frame(id: string, title: string, text: Child, controls: Child[], ...body: Child[]): HTMLElement {
  return h('section', {id, 'aria-labelledby': `${id}-title`},
    h('div', {class: 'heading'},
      h('h2', {id: `${id}-title`}, title),
      h('p', {}, text),
      controls.length > 0 && h('div', {class: 'controls'}, ...controls)),
    h('div', {class: 'problem', role: 'status'}),
    ...body);
}

/** Says what is missing and what to do about it. */
export const notice = (what: string, todo: string): HTMLElement => h('p', {class: 'notice'}, h('strong', {}, what), todo);

/** Returns the milliseconds after which a section of a range is loaded again. */
export const pace = (range: Range): number => {
  const seconds = [...range.matchAll(/(\d+)([dhms])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * {d: 86_400, h: 3600, m: 60, s: 1}[unit as 'd' | 'h' | 'm' | 's'], 0);
  return seconds <= 300 ? 5_000 : seconds <= 3600 ? 15_000 : 60_000;
};

/**
 * Loads sections again at the pace of the range, one after the other, and only those in
 * view: a page left open in a background tab asks for nothing.
 */
export class Refresher {
  private loaded = new Map<Section, number>();
  private inView = new Set<Element>();
  private abort = new AbortController();
  private running = false;

  /** pace returns the milliseconds after which a section is loaded again. */
  constructor(private sections: () => Section[], private pace: () => number, private online: () => boolean) {
    setInterval(() => void this.run(), 1000);
    document.addEventListener('visibilitychange', () => void this.run());
  }

  private observer = new IntersectionObserver(entries => {
    for (const {target, isIntersecting} of entries) {
      if (isIntersecting) this.inView.add(target);
      else this.inView.delete(target);
    }
    void this.run();
  }, {rootMargin: '400px'});

  watch(): void {
    this.observer.disconnect();
    this.inView.clear();
    for (const {element} of this.sections()) this.observer.observe(element);
  }

  /** Marks all sections, or one, as out of date and loads those in view. */
  refresh(only?: Section): void {
    if (only) this.loaded.delete(only);
    else {
      this.abort.abort();
      this.abort = new AbortController();
      this.loaded.clear();
    }
    void this.run();
  }

  private async run(): Promise<void> {
    if (this.running || document.hidden || !this.online()) return;
    this.running = true;
    try {
      for (const section of this.sections()) {
        if (!this.inView.has(section.element)) continue;
        if (performance.now() - (this.loaded.get(section) ?? -Infinity) < this.pace()) continue;
        const {signal} = this.abort;
        this.loaded.set(section, performance.now());
        await load(section, signal);
        if (signal.aborted) this.loaded.delete(section);
      }
    } finally {
      this.running = false;
    }
    if (this.sections().some(section => this.inView.has(section.element) && !this.loaded.has(section))) void this.run();
  }
}

async function load(section: Section, signal: AbortSignal): Promise<void> {
  const problem = section.element.querySelector('.problem');
  section.element.setAttribute('aria-busy', 'true');
  try {
    await section.load(signal);
    if (problem) fill(problem);
  } catch (error) {
    // A lost connection is shown once, at the top of the page.
    if (problem && error instanceof ApiError) {
      fill(problem, h('div', {class: 'banner bad'}, h('strong', {}, 'Not loaded'), h('p', {}, `${error.message}. ${error.remedy}.`)));
    } else if (!signal.aborted && !(error instanceof TypeError)) {
      throw error;
    }
  } finally {
    section.element.removeAttribute('aria-busy');
  }
}
