// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Distributions} from './api';

/** What a file that holds the page has in place of a Collector: the answers to the questions of the page, by their addresses. */
interface Report { partial: boolean; files: number; notes: string[]; answers: Record<string, unknown> }

const element = document.getElementById('report');

/** The report of this file, or null on the page of a Collector. */
export const report = element && JSON.parse(element.textContent) as Report;

/** Returns a question, whatever the order of its parameters. The values that it asks for are no part of it: see answer. */
function question(path: string, query?: URLSearchParams): string {
  const parameters = new URLSearchParams(query);
  parameters.delete('value');
  parameters.sort();
  return `${path}?${parameters}`;
}

const answers = new Map(Object.entries(report?.answers ?? {}).map(([address, content]) => {
  const [path = '', query] = address.split('?');
  return [question(path, new URLSearchParams(query)), content];
}));

/** Returns the answer of the report, or undefined. From an answer about many values, it picks those that are asked for. */
function find(path: string, query?: URLSearchParams): unknown {
  const found = answers.get(question(path, query)), values = query?.getAll('value') ?? [];
  if (!found || values.length === 0) return found;
  const groups = (found as Distributions).groups.filter(({value}) => values.includes(value));
  return groups.length === values.length ? {...found, groups} : undefined;
}

/** Returns a copy of the report's answer, or undefined. */
export const answer = (path: string, query?: URLSearchParams): unknown => structuredClone(find(path, query));

/** Reports whether a question can be asked: a Collector answers each, a report those of its answers. */
export const offers = (path: string, query?: URLSearchParams): boolean => report === null || find(path, query) !== undefined;
