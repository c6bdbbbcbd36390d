// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {ApiError, type Doubt, type Meta, type Now, read} from './api';
import {fill, h, setText} from './dom';
import {Colors} from './groups';
import {Header} from './header';
import {Live, type State} from './live';
import {report} from './report';
import {Refresher, type Section, notice, pace} from './section';
import {CompareSection} from './sections/compare';
import {emptyPage} from './sections/empty';
import {HeatmapSection} from './sections/heatmap';
import {LoadSection} from './sections/load';
import {NowSection} from './sections/now';
import {PhasesSection} from './sections/phases';
import {PromptsSection} from './sections/prompts';
import {requestPage} from './sections/request';
import {SlowestSection, withoutStrip} from './sections/slowest';
import {TrendsSection} from './sections/trends';
import {formulas} from './terms';
import {count, span, standAt, time} from './units';
import {View} from './view';

const element = (id: string) => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no #${id}`);
  return found;
};

class Page {
  private view = new View();
  private header = new Header(element('header'), element('filters'), this.view);
  private content = element('content');
  private banner = h('div', {role: 'alert'});
  private notes = reportNotes();
  private doubts = h('div', {id: 'doubts', role: 'status'});
  private doubted = '';
  private nomatch = h('div', {class: 'nomatch'});
  private meta: Meta | null = null;
  private last: Now | null = null;
  private mode = '';
  private colors = new Colors();
  private now = new NowSection(this.view);
  private trends = new TrendsSection(this.view, () => this.known, this.colors, total => this.now.sparklines(total));
  private load = new LoadSection(this.view);
  private sections: Section[] = [
    this.now, this.trends, new HeatmapSection(this.view), new PhasesSection(this.view, () => this.known), this.load, new PromptsSection(this.view),
    new SlowestSection(this.view, () => this.known), new CompareSection(this.view, () => this.known, this.colors),
  ];
  private live = new Live(now => this.tick(now), (state, before) => this.connection(state, before));
  private refresher = new Refresher(() => (this.mode === 'numbers' ? this.sections : []), () => (this.view.ended ? Infinity : pace(this.view.range)), () => this.live.state !== 'offline');

  constructor() { this.view.onChange(() => this.changed()); }

  async start(): Promise<void> {
    if (!await this.loadMeta()) {
      setTimeout(() => void this.start(), 2000);
      return;
    }
    if (!report) setInterval(() => void this.loadMeta(), 30_000);
    this.live.connect(this.view.query());
  }

  private get known(): Meta {
    if (!this.meta) throw new Error('meta is read before it is loaded');
    return this.meta;
  }

  private async loadMeta(): Promise<boolean> {
    let meta: Meta;
    try {
      meta = await read<Meta>('meta', this.view.selection).catch((error: unknown) =>
        (error instanceof ApiError && error.status === 400 ? read<Meta>('meta') : Promise.reject(error))); // the sections name the wrong filter
    } catch (error) {
      if (!this.meta) this.failed(error);
      return false;
    }
    const another = this.meta !== null && this.meta.split_by !== meta.split_by;
    this.meta = meta;
    if (report) standAt(meta.time);
    if (another) this.refresher.refresh();
    this.header.update(meta);
    this.footer(meta);
    this.now.reserve(meta);
    this.trends.reserve(meta);
    if (meta.history.since === null) this.show('empty');
    else this.show(this.view.get('request') ? `request ${this.view.get('request')}` : 'numbers');
    return true;
  }

  /** Shows the numbers, the page of a request, or how to send a first one. */
  private show(mode: string): void {
    if (mode === this.mode) return;
    this.mode = mode;
    this.header.numbers(mode === 'numbers');
    scrollTo(0, 0);
    if (mode === 'empty') fill(this.content, this.banner, this.notes, this.doubts, report ? notice('No requests with a latency', 'The files have none.') : emptyPage(this.known.endpoints));
    else if (mode === 'numbers') fill(this.content, this.banner, this.notes, this.doubts, this.nomatch, ...this.sections.map(section => section.element), formulas());
    else void this.showRequest(mode);
    this.refresher.watch();
  }

  private async showRequest(mode: string): Promise<void> {
    const page = await requestPage(this.view, this.view.get('request'), withoutStrip(this.known));
    if (mode !== this.mode) return;
    fill(this.content, this.banner, page);
    page.querySelector<HTMLElement>('h2')?.focus();
  }

  private changed(): void {
    if (!this.meta) return;
    void this.loadMeta(); // filters change what splits the charts
    this.header.update(this.meta);
    this.header.state(this.live.state, this.last);
    if (this.mode !== 'empty') this.show(this.view.get('request') ? `request ${this.view.get('request')}` : 'numbers');
    this.live.connect(this.view.query());
    this.refresher.refresh();
  }

  private tick(now: Now): void {
    this.last = now;
    this.header.state(this.live.state, now);
    if (this.mode === 'empty' && Object.values(now.requests).some(requests => requests > 0)) void this.loadMeta();
    this.doubt(now.doubts);
    this.now.update(now);
    this.trends.thresholds(now);
    this.load.thresholds(now);
    const none = Object.values(now.requests).every(requests => requests === 0);
    fill(this.nomatch, none && this.mode === 'numbers' && h('div', {class: 'banner'}, h('strong', {}, this.view.ended ? `No request from ${span(now.from, now.to)}` : `No request in the last ${this.view.range}`),
      h('p', {}, this.view.filtered ? 'Clear the filters or widen the range.' : 'Widen the range, or check that traffic reaches the Collector.')));
  }

  /** Shows why the numbers may be wrong, above all of them. */
  private doubt(doubts: Doubt[]): void {
    const key = JSON.stringify(doubts.map(({message, about}) => [message, about]));
    if (key === this.doubted) return;
    this.doubted = key;
    const open = this.doubts.querySelector('details')?.open ?? innerWidth > 600; // on a phone, the numbers come first
    fill(this.doubts, doubts.length > 0 && h('details', {class: 'banner doubts', open}, h('summary', {}, h('strong', {}, `Doubts (${doubts.length})`)), h('ul', {}, ...doubts.map(({message, about, since}) => {
      const [what = '', ...remedy] = message.split('; ');
      return h('li', {title: `since ${time(since)}`}, h('span', {}, sentence(what), about && ': ', about && h('bdi', {}, about), '. '), h('span', {class: 'muted'}, `${sentence(remedy.join('; '))}.`));
    }))));
  }

  private connection(state: State, before: State): void {
    this.header.state(state, this.last);
    if (state === 'offline') {
      fill(this.banner, h('div', {class: 'banner bad'}, h('strong', {}, 'Connection lost'),
        h('p', {}, `The numbers are ${this.last ? `those of ${time(this.last.time)}` : 'missing'}. Check that the Collector runs; the page connects again by itself.`)));
    } else fill(this.banner);
    if (state === 'live' && before === 'offline') {
      void this.loadMeta();
      this.refresher.refresh();
    }
  }

  private failed(error: unknown): void {
    this.header.state('offline', null);
    const [what, todo] = error instanceof ApiError ? [error.message, `${error.remedy}.`]
      : ['The Collector does not answer', 'Check that it runs and that this address is the endpoint of its token_sli exporter. The page tries again every two seconds.'];
    fill(this.content, notice(what, todo));
  }

  private footer(meta: Meta): void {
    const link = (name: string, href: string) => h('a', {href}, name);
    const text = report ? `${count(meta.series.held)} series` : `${count(meta.series.held)} of ${count(meta.series.limit)} series${meta.history.coarsened ? ' · history is coarser than usual: it has reached history::max_memory_mib' : ''}`;
    const footer = element('footer');
    if (!footer.firstChild) {
      fill(footer, h('span', {}), ...report ? [] : [link('Metrics', 'metrics'), link('API', 'api/v1/openapi.yaml')], link('What each number means', '#terms'), report ? null : link('Licences', 'licenses.txt'), h('span', {}, `tokenpulse ${meta.version}`));
    }
    if (footer.firstElementChild) setText(footer.firstElementChild, text);
  }
}

/** Says what the numbers of a report leave out. */
const reportNotes = (): HTMLElement | null => (!report || !report.partial && report.notes.length === 0 ? null : h('div', {id: 'notes', class: 'banner doubts'},
  h('strong', {}, report.partial ? 'Part of the files: reading was interrupted' : 'Notes'), h('ul', {}, ...report.notes.map(note => h('li', {}, `${sentence(note)}.`)))));

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1).replaceAll('`', '');

void new Page().start();
