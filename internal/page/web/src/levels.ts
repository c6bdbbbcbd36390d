// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Indicator, Maybe, Now, SLONow} from './api';
import type {IconName} from './icons';

/** How good a number is. A word or a symbol beside it says the same as its colour. */
export type Level = 'good' | 'warn' | 'bad' | 'none';

export interface Limited { level: Level; limit: Maybe; slo: string }

export const unlimited: Limited = {level: 'none', limit: null, slo: ''};
const worstFirst: Level[] = ['bad', 'warn', 'good', 'none'];

/** Returns the SLOs on an indicator. */
export const slosOn = (indicator: Indicator, {slos}: Now): SLONow[] => slos.filter(slo => slo.indicator?.replaceAll('.', '_') === indicator);

/** Returns the worst first; of equal ones, that which comes first in the list. */
export const byLevel = <T extends {level: Level}>(all: T[]): T[] => [...all].sort((a, b) => worstFirst.indexOf(a.level) - worstFirst.indexOf(b.level));

/**
 * Compares the p95 of an indicator with the threshold of the SLO on it that does worst, and of equal ones
 * with the lowest. Above it is bad only if too many requests are. Budgets do not count: requests that
 * failed spend them, too. Nor do SLOs on other requests than most of those that are shown.
 */
export function againstThresholds(indicator: Indicator, now: Now): Limited {
  const p95 = now.indicators[indicator]?.p95;
  if (p95 === undefined) return unlimited;
  const all = slosOn(indicator, now).filter(slo => slo.threshold !== null && slo.vantage === now.vantage.shown && (slo.judged ?? 0) >= 0.5)
    .sort((a, b) => (a.threshold ?? 0) - (b.threshold ?? 0))
    .map(({slo, threshold, objective, attainment}): Limited => {
      const missed = objective !== null && attainment !== null && attainment < objective;
      return {slo, limit: threshold, level: p95 <= (threshold ?? 0) ? 'good' : missed ? 'bad' : 'warn'};
    });
  return byLevel(all)[0] ?? unlimited;
}

/**
 * Compares the share of failed requests with the error budget of the SLO on the outcome or, without one, with
 * the smallest budget. Client mistakes alone are no more than a warning: they spend no budget.
 */
export function againstBudget(failed: number, mistakes: number, {slos}: Now): Limited {
  const withObjective = slos.flatMap(({slo, indicator, objective}) => (objective === null ? [] : [{slo, indicator, budget: 1 - objective}])).sort((a, b) => a.budget - b.budget);
  const by = withObjective.find(({indicator}) => indicator === 'outcome') ?? withObjective[0];
  if (!by) return {...unlimited, level: failed > 0 ? 'warn' : 'good'};
  return {slo: by.slo, limit: by.budget, level: failed <= by.budget ? 'good' : failed - mistakes <= by.budget ? 'warn' : 'bad'};
}

/** Returns what became of the budget of an SLO, with a word and an icon. */
export function verdict({attainment, objective, budget_remaining: left}: SLONow): {level: Level; word: string; icon: IconName} {
  if (attainment === null) return {level: 'none', word: 'No verdict', icon: 'minus'};
  if (objective === null) return {level: 'none', word: 'No objective', icon: 'minus'};
  if (left !== null && left < 0) return {level: 'bad', word: 'Budget spent', icon: 'cross'};
  if (attainment < objective) return {level: 'warn', word: 'Below objective', icon: 'warning'};
  return {level: 'good', word: 'Met', icon: 'check'};
}
