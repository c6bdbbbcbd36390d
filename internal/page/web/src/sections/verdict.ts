// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {ApiError, type Arm, type Comparison, type Meta, read} from '../api';
import {select} from '../controls';
import {fill, h} from '../dom';
import {notice} from '../section';
import {isolated, valueName} from '../terms';
import {count, digits, percent, time} from '../units';
import type {View} from '../view';

/** What each reason of a verdict means. docs/canary.md says what to do. */
const reasons: Record<string, string> = {
  equivalent: 'within the tolerance',
  difference: 'requests of the second are bad more often than chance explains',
  too_few: 'too few bad requests so far',
  coverage: 'the share of requests without a measurement differs',
  outcome_mix: 'the share of failed and cancelled requests differs',
  traffic_ratio: 'the share of traffic is not the expected one',
  dependence: 'bad requests come in groups, so their number says too little',
  too_few_replicas: 'fewer than three replicas',
};

/** The verdict on two values of a dimension for one SLO. The Collector counts from when the pair begins. */
export class VerdictCard {
  private slo = select('Verdict on', slo => this.view.set({slo}));
  private body = h('div');
  private offered: HTMLButtonElement | undefined;
  /** Pairs that began here, which are in no answer of `meta` yet. */
  private begun = new Set<string>();
  readonly element = h('div', {class: 'comparison'}, h('div', {class: 'controls'}, this.slo.element), this.body);

  constructor(private view: View, private meta: () => Meta) {}

  async load(dimension: string, [baseline, candidate]: [string, string], signal: AbortSignal): Promise<void> {
    const {slos, dimensions, pairs} = this.meta();
    const slo = slos.some(known => known.slo === this.view.get('slo')) ? this.view.get('slo') : '';
    this.slo.update([{value: '', name: 'no SLO'}, ...slos.map(({slo}) => ({value: slo, name: slo}))], slo);
    this.element.hidden = !slos.length || !dimensions.some(({name}) => name === dimension) || baseline === '' || candidate === '';
    if (this.element.hidden || slo === '') {
      fill(this.body, h('p', {class: 'caption'}, 'Choose an SLO: is the second worse than the first?'));
      return;
    }
    const pair = new URLSearchParams({dimension, baseline, candidate, slo});
    const begun = this.begun.has(String(pair))
      || pairs.some(known => !known.vantage && known.dimension === dimension && known.baseline === baseline && known.candidate === candidate && known.slo === slo);
    if (!begun) {
      this.offer(baseline, candidate, pair);
      return;
    }
    try {
      this.show(baseline, candidate, await read<Comparison>('compare', pair, signal));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      this.begun.delete(String(pair)); // it has ended
      this.offer(baseline, candidate, pair);
    }
  }

  /** Offers to begin a pair. Only a click does: opening a page changes nothing. */
  private offer(baseline: string, candidate: string, pair: URLSearchParams): void {
    if (this.offered?.isConnected && this.offered.value === String(pair)) return; // keeps the focus
    const problem = h('div');
    const begin = async () => {
      try {
        const answer = await read<Comparison>('compare', pair, undefined, 'POST');
        this.begun.add(String(pair));
        if (problem.isConnected) this.show(baseline, candidate, answer); // else another pair was chosen meanwhile
      } catch (error) {
        fill(problem, error instanceof ApiError ? notice(error.message, error.remedy) : notice('No connection', 'Try again.'));
      }
    };
    this.offered = h('button', {type: 'button', class: 'button', value: String(pair), onclick: () => void begin()}, 'Begin');
    fill(this.body, notice('The Collector does not compare them yet', 'It counts the requests that start after you begin.'),
      this.offered, problem);
  }

  private show(baseline: string, candidate: string, answer: Comparison): void {
    const arm = (name: string, {requests, bad, estimate}: Arm) => h('tr', {}, h('td', {}, h('bdi', {}, isolated(valueName(name)))),
      ...[count(requests), count(bad), percent(estimate)].map(text => h('td', {class: 'number'}, text)));
    const bound = (value: number | null, absent = 'open') => (value === null ? absent : digits(value));
    fill(this.body,
      notice(`${answer.verdict}: ${reasons[answer.reason] ?? answer.reason}`, answer.hint),
      h('div', {class: 'legend'}, h('table', {}, h('thead', {}, h('tr', {}, ...['', 'requests', 'bad', 'share'].map(text => h('th', {scope: 'col', class: 'number'}, text)))),
        h('tbody', {}, arm(baseline, answer.baseline), arm(candidate, answer.candidate)))),
      h('p', {class: 'caption'}, `Odds ratio ${bound(answer.ratio.estimate, 'unknown')}, from ${bound(answer.ratio.lower)} to ${bound(answer.ratio.upper)}; ${count(answer.windows)} windows, ${count(answer.baseline.replicas)} and ${count(answer.candidate.replicas)} replicas`,
        answer.since !== null && ` since ${time(answer.since)}`));
  }
}
