// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Range} from './api';
import {offers, report} from './report';

const ownFilters = ['vantage', 'outcome']; // parameters of their own; dimensions share `where`
const filters = ['where', ...ownFilters];

/** What the page shows. All of it is in the URL, so that a link and a reload keep it. */
export class View {
  private parameters = new URLSearchParams(location.search);
  private listeners: (() => void)[] = [];

  constructor() {
    addEventListener('popstate', () => {
      if (this.parameters.toString() === new URLSearchParams(location.search).toString()) return; // a link within the page
      this.parameters = new URLSearchParams(location.search);
      this.notify();
    });
  }

  onChange(listener: () => void): void { this.listeners.push(listener); }

  get(name: string): string { return this.parameters.get(name) ?? ''; }

  get range(): Range { return this.get('range') || '5m'; }

  /** The end of the range in seconds since 1970, for a page that stands still; null for now. */
  get end(): number | null { return this.parameters.has('end') ? Number(this.get('end')) : null; }

  /** Reports whether the page shows a range that has ended, and does not change. */
  get ended(): boolean { return report !== null || this.end !== null; }

  /** Sets parameters. An empty value removes one, so that its default holds. */
  set(changes: Record<string, string>): void {
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') this.parameters.delete(name);
      else this.parameters.set(name, value);
    }
    this.push();
  }

  /** Returns the values of a grouping that are shown; none means all. */
  filter(name: string): string[] {
    if (ownFilters.includes(name)) return this.parameters.getAll(name);
    return this.parameters.getAll('where').filter(pair => pair.startsWith(`${name}=`)).map(pair => pair.slice(name.length + 1));
  }

  setFilter(name: string, value: string | null): void {
    this.parameters = this.filteredBy(name, value);
    this.push();
  }

  /** Reports whether a filter can be set. A report has few of them. */
  offersFilter(name: string, value: string): boolean { return report === null || offers('now', this.query({}, '', this.filteredBy(name, value))); }

  /** Returns the parameters with another filter. A report has answers to one filter at a time, in the split that fits it. */
  private filteredBy(name: string, value: string | null): URLSearchParams {
    const parameters = new URLSearchParams(this.parameters);
    if (report) for (const other of [...filters, 'by']) parameters.delete(other);
    if (ownFilters.includes(name)) {
      parameters.delete(name);
      if (value) parameters.set(name, value);
      return parameters;
    }
    const others = parameters.getAll('where').filter(pair => !pair.startsWith(`${name}=`));
    parameters.delete('where');
    for (const pair of others) parameters.append('where', pair);
    if (value !== null) parameters.append('where', `${name}=${value}`);
    return parameters;
  }

  get filtered(): boolean { return filters.some(name => this.parameters.has(name)); }

  clearFilters(): void {
    for (const name of filters) this.parameters.delete(name);
    this.push();
  }

  /** Returns the filters as parameters of the API, with further parameters, and without the filter on a grouping. */
  query(more: Record<string, string | string[]> = {}, free = '', parameters = this.parameters): URLSearchParams {
    const query = new URLSearchParams();
    for (const name of filters) {
      for (const value of parameters.getAll(name)) if (name !== free && !(name === 'where' && value.startsWith(`${free}=`))) query.append(name, value);
    }
    if (report === null) {
      query.set('range', this.range);
      if (this.end !== null) query.set('end', this.get('end'));
    }
    for (const [name, value] of Object.entries(more)) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== '' || Array.isArray(value)) query.append(name, one);
    }
    return query;
  }

  /** Returns the filters that decide what splits the charts. */
  get selection(): URLSearchParams {
    const query = this.query();
    for (const name of ['range', 'end', 'outcome']) query.delete(name);
    return query;
  }

  /** Returns the address of this view with one parameter changed. */
  href(name: string, value: string): string {
    const parameters = new URLSearchParams(this.parameters);
    if (value === '') parameters.delete(name);
    else parameters.set(name, value);
    return parameters.size || report ? `?${parameters}` : './';
  }

  private push(): void {
    history.pushState(null, '', this.parameters.size ? `?${this.parameters}` : location.pathname);
    this.notify();
  }

  private notify(): void { for (const listener of this.listeners) listener(); }
}
