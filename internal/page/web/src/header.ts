// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Meta, Now} from './api';
import {type Option, segments, select} from './controls';
import {fill, h, setText} from './dom';
import {defaultSplit, groupings, maxGroups, split, splitBy} from './groups';
import {icon} from './icons';
import {severalVantages, sum, vantageName} from './sections/vantages';
import type {State} from './live';
import {offers, report} from './report';
import {dimensionName, valueName} from './terms';
import {theme, toggleTheme, onTheme} from './theme';
import {dates, span, time} from './units';
import type {View} from './view';

const parts = [['now', report ? 'Summary' : 'Now'], ['trends', 'Over time'], ['heatmap', 'ITL'], ['phases', 'Phases'], ['load', 'Load'], ['prompts', 'Prompts'], ['slowest', 'Slowest'], ['compare', 'Compare']] as const;
const all = '\u0000all'; // no label value contains it
const maxSelects = 6; // with the split, they fill a row of a laptop's screen

/** The bar at the top: connection, range, theme, and the filters. */
export class Header {
  private status = h('span', {class: 'status', role: 'status'});
  private statusText = h('span', {}, 'Connecting');
  private range = segments('Range', ['5m', '1h', '24h', '7d'].map(value => ({value, name: value})), () => this.view.range, value => this.view.set({range: value === '5m' ? '' : value}), () => report === null);
  /** Ends a page that stands still. */
  private resume = h('button', {type: 'button', class: 'button', onclick: () => this.view.set({end: ''})}, 'Go live');
  private themeButton = h('button', {type: 'button', class: 'button icon', onclick: toggleTheme});
  private selects = new Map<string, ReturnType<typeof select>>();
  private nav = h('nav', {'aria-label': 'Parts of the page'}, ...parts.map(([id, name]) => h('a', {href: `#${id}`}, name)));
  /** Opens the filters on narrow screens, where they would fill the first one. */
  private toggle = h('button', {type: 'button', class: 'button toggle', 'aria-expanded': 'false', onclick: () => {
    this.toggle.ariaExpanded = String(this.filters.classList.toggle('open'));
  }}, 'Filters');
  /** Shows the selects that would not fit into one row. */
  private rest = h('button', {type: 'button', class: 'button', 'aria-expanded': 'false', onclick: () => {
    this.rest.ariaExpanded = String(this.filters.classList.toggle('all'));
    this.nameRest();
  }});
  private clear = h('button', {type: 'button', class: 'button clear', onclick: () => this.view.clearFilters()}, 'Clear filters');

  constructor(element: HTMLElement, private filters: HTMLElement, private view: View) {
    const brand = h('h1', {class: 'brand'}, icon('pulse'), h('a', {class: 'brand', href: report ? '?' : './'}, 'tokenpulse'));
    fill(element, h('div', {class: 'bar'}, brand, this.status, this.nav, h('span', {class: 'grow'}), this.resume, this.range.element, this.themeButton));
    this.filters.append(this.toggle);
    this.state('connecting', null);
    onTheme(() => this.nameTheme());
    this.nameTheme();
  }

  /** Shows the state of the connection or, of a page that stands still, the range of its numbers. */
  state(state: State, last: Now | null): void {
    this.status.dataset.state = state;
    const {end, ended} = this.view;
    this.resume.hidden = end === null || report !== null;
    const range = ({requests, from, to}: Now) => (report === null ? span(from, to) : Object.values(requests).some(n => n > 0) ? dates(from, to) : '');
    const text = {connecting: 'Connecting', live: !ended ? 'Live' : last === null ? 'Loading' : range(last), offline: last === null ? 'Not connected' : `Disconnected since ${time(last.time)}`}[state];
    if (!this.statusText.isConnected) fill(this.status, icon('dot'), this.statusText);
    setText(this.statusText, text);
    this.status.title = end === null ? '' : `${this.view.range} until ${time(end)}, in whole slots of the history`;
    this.status.firstElementChild?.replaceWith(icon(state === 'offline' ? 'cross' : 'dot'));
  }

  /** Shows or hides what belongs to the numbers only. */
  numbers(shown: boolean): void {
    this.nav.hidden = !shown;
    this.filters.hidden = !shown;
  }

  /** Shows the filters that the Collector offers, with their current values. */
  update(meta: Meta): void {
    this.range.update();
    const current = (values: string[]) => (values.length === 0 ? all : values.length === 1 ? values[0] ?? all : 'several');
    const options = (values: string[], chosen: string[], usual = 'All', name = valueName): Option[] => [
      {value: all, name: usual},
      ...(chosen.length > 1 ? [{value: 'several', name: `${chosen.length} values`}] : []),
      ...[...new Set([...values, ...chosen])].map(value => ({value, name: name(value)})),
    ];
    const by: Option[] = [];
    const filters = groupings(meta).map(({name, values}) => ({name, values: values.filter(value => this.view.offersFilter(name, value))}));
    const offered = report ? filters.filter(({name, values}) => values.length > 1 || this.view.filter(name).length > 0) : filters;
    const useful = this.mostUseful(offered, splitBy(this.view, meta));
    for (const {name, values} of offered) {
      const chosen = this.view.filter(name);
      const several = name === 'vantage' && severalVantages(meta);
      this.select(name, dimensionName(name), value => this.view.setFilter(name, value === all ? null : value)).update(several
        ? options([...values.filter(Boolean), ...this.view.offersFilter(name, sum) ? [sum] : []], chosen, 'Outermost', vantageName)
        : options(values, chosen, 'All', name === 'vantage' ? vantageName : valueName), current(chosen));
      this.mark(name, 'set', chosen.length > 0);
      this.mark(name, 'rare', !useful.has(name));
    }
    for (const {name} of groupings(meta)) {
      if (name === defaultSplit(meta)) by.unshift({value: '', name: dimensionName(name)});
      else if (offers('trends', this.view.query(split(this.view, meta, maxGroups, name)))) by.push({value: name, name: dimensionName(name)});
    }
    const choice = this.select('by', 'split by', value => this.view.set({by: value}));
    choice.update(by, this.view.get('by'));
    choice.element.hidden = by.length < 2;
    const active = [...this.selects.values()].filter(({element}) => element.classList.contains('set')).length;
    setText(this.toggle, active > 0 ? `Filters (${active})` : 'Filters');
    this.rest.hidden = useful.size === offered.length;
    this.nameRest(offered.length - useful.size);
    this.clear.hidden = !this.view.filtered;
    if (!this.clear.isConnected) this.filters.append(this.rest, this.clear);
  }

  private select(key: string, label: string, choose: (value: string) => void): ReturnType<typeof select> {
    let known = this.selects.get(key);
    if (!known) {
      known = select(label, choose);
      known.element.dataset.filter = key;
      this.selects.set(key, known);
      this.filters.insertBefore(known.element, this.rest.isConnected ? this.rest : null);
    }
    return known;
  }

  private mark(key: string, state: 'set' | 'rare', on: boolean): void { this.selects.get(key)?.element.classList.toggle(state, on); }

  /** Returns the groupings that are in use and, as far as there is room, those with the fewest values. One value selects nothing. */
  private mostUseful(offered: {name: string; values: string[]}[], split: string): Set<string> {
    const used = offered.filter(({name}) => name === split || this.view.filter(name).length > 0);
    const others = offered.filter(grouping => !used.includes(grouping)).sort((a, b) => Number(a.values.length < 2) - Number(b.values.length < 2) || a.values.length - b.values.length);
    return new Set([...used, ...others.slice(0, Math.max(0, maxSelects - used.length))].map(({name}) => name));
  }

  private nameRest(selects = this.filters.querySelectorAll('.rare').length): void {
    setText(this.rest, this.filters.classList.contains('all') ? 'Fewer filters' : `More filters (${selects})`);
  }

  private nameTheme(): void {
    const next = theme() === 'dark' ? 'light' : 'dark';
    this.themeButton.ariaLabel = `Switch to the ${next} theme`;
    this.themeButton.title = this.themeButton.ariaLabel;
    fill(this.themeButton, icon(next === 'dark' ? 'moon' : 'sun'));
  }
}
