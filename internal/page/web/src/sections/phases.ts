// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {type Distributions, type Group, type Meta, type Phase, read} from '../api';
import {fill, h, setText, swatch} from '../dom';
import {split, withOthers} from '../groups';
import {report} from '../report';
import {type Section, frame, notice} from '../section';
import {dimensionName, valueName} from '../terms';
import {duration} from '../units';
import type {View} from '../view';

const phases: Phase[] = ['network', 'queue', 'prefill', 'transfer', 'decode'];

/** The mean time that a request spends in each phase, by group. */
export class PhasesSection implements Section {
  private bars = h('div', {class: 'bars', role: 'list'});
  private text = h('span');
  readonly element = frame('phases', 'Where the time goes', this.text, [],
    h('div', {class: 'card'}, h('p', {class: 'keys', 'aria-hidden': 'true'}, ...phases.map(phase => h('span', {}, swatch(`--phase-${phase}`, 'box'), phase))), this.bars,
      h('p', {class: 'caption'}, 'Prefill contains the queue where no queue is reported.')));

  constructor(private view: View, private meta: () => Meta) {}

  async load(signal: AbortSignal): Promise<void> {
    const answer = await read<Distributions>('distributions', this.view.query(split(this.view, this.meta(), 12)), signal);
    setText(this.text, `Mean duration of each phase by ${dimensionName(answer.by)}.`);
    const groups = withOthers(answer).filter(group => phases.some(phase => group.indicators[phase]));
    const longest = Math.max(...groups.map(total));
    fill(this.bars, ...groups.map(group => row(group, longest)));
    if (groups.length === 0) fill(this.bars, notice('No phases in this range', `They come with streams that have a first token.${report ? '' : ' Wait for one, or widen the range.'}`));
  }
}

const mean = (group: Group, phase: Phase) => group.indicators[phase]?.mean ?? 0;
const total = (group: Group) => phases.reduce((sum, phase) => sum + mean(group, phase), 0);

function row(group: Group, longest: number): HTMLElement {
  const segments = phases.filter(phase => mean(group, phase) > 0).map(phase => {
    const share = mean(group, phase) / longest;
    const text = `${phase} ${duration(mean(group, phase))}`;
    const segment = h('span', {title: text}, share > 0.12 ? text : '');
    segment.style.background = `var(--phase-${phase})`;
    segment.style.color = `var(--phase-${phase}-text)`;
    segment.style.width = `${share * 100}%`;
    return segment;
  });
  const words = phases.filter(phase => group.indicators[phase]).map(phase => `${phase} ${duration(mean(group, phase))}`).join(', ');
  return h('div', {class: 'row', role: 'listitem'},
    h('span', {title: valueName(group.value)}, h('bdi', {}, valueName(group.value))),
    h('div', {class: 'stack', role: 'img', 'aria-label': words}, ...segments),
    h('span', {class: 'number', title: 'Sum of the means'}, duration(total(group))));
}
