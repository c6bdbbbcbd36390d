// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

type Theme = 'light' | 'dark';
const stored = 'tokenpulse-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
const listeners: (() => void)[] = [];

const system = (): Theme => (dark.matches ? 'dark' : 'light');
const chosen = (): Theme | null => {
  const value = localStorage.getItem(stored);
  return value === 'light' || value === 'dark' ? value : null;
};

export const theme = (): Theme => (document.documentElement.dataset.theme as Theme | undefined) ?? system();

function apply(): void {
  document.documentElement.dataset.theme = chosen() ?? system();
  for (const listener of listeners) listener();
}

/** Calls a listener after each change, as canvases have to be drawn again. */
export function onTheme(listener: () => void): void { listeners.push(listener); }

/** Follows the system until the user chooses the other theme, and again once both agree. */
export function toggleTheme(): void {
  const next = theme() === 'dark' ? 'light' : 'dark';
  if (next === system()) localStorage.removeItem(stored);
  else localStorage.setItem(stored, next);
  apply();
}

dark.addEventListener('change', apply);
apply();
