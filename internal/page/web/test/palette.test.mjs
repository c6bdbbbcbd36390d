// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Checks the colours of src/style/tokens.css by the formulas of WCAG 2.2 (contrast), by
// Machado et al. 2009 (colour vision deficiencies) and by Oklab (distance).
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

const css = readFileSync(new URL('../src/style/tokens.css', import.meta.url), 'utf8');
const [light, dark] = css.split(':root[data-theme="dark"]').map(block => Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map(([, name, hex]) => [name, hex])));

const linear = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const luminance = hex => { const [r, g, b] = linear(hex); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const vision = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const seen = (matrix, hex) => matrix.map(row => Math.min(1, Math.max(0, row.reduce((sum, weight, i) => sum + weight * linear(hex)[i], 0))));
function oklab([r, g, b]) {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}
const distance = (matrix, a, b) => { const [x, y] = [a, b].map(hex => oklab(seen(matrix, hex))); return 100 * Math.hypot(...x.map((v, i) => v - y[i])); };

for (const [name, theme] of Object.entries({light, dark: {...light, ...dark}})) {
  const series = [1, 2, 3, 4, 5, 6].map(i => theme[`series-${i}`]);
  test(`${name}: text has a contrast of at least 4.5`, () => {
    const pairs = [['text', 'page'], ['text', 'surface'], ['muted', 'page'], ['muted', 'surface'], ['muted', 'sunken'], ['accent', 'page'], ['accent', 'surface'], ['bad', 'surface'],
      ['good', 'surface'], ['good', 'good-fill'], ['warn', 'warn-fill'], ['bad', 'bad-fill'], ['text', 'bad-fill'], ['text', 'warn-fill'],
      ...['network', 'queue', 'prefill', 'transfer', 'decode'].map(phase => [`phase-${phase}-text`, `phase-${phase}`])];
    for (const [text, background] of pairs) assert.ok(contrast(theme[text], theme[background]) >= 4.5, `${text} on ${background}: ${contrast(theme[text], theme[background]).toFixed(2)}`);
  });
  test(`${name}: lines and controls have a contrast of at least 3`, () => {
    for (const color of [...series, theme['control-line']]) assert.ok(contrast(color, theme.surface) >= 3, `${color}: ${contrast(color, theme.surface).toFixed(2)}`);
  });
  test(`${name}: series stay apart for every kind of colour vision`, () => {
    for (const [kind, matrix] of Object.entries(vision)) {
      series.forEach((a, i) => series.slice(0, i).forEach(b => assert.ok(distance(matrix, a, b) >= 9.5, `${kind}: ${a} and ${b}: ${distance(matrix, a, b).toFixed(1)}`)));
    }
  });
  test(`${name}: the heat colours go one way in lightness`, () => {
    const steps = [0, 1, 2, 3, 4].map(i => luminance(theme[`heat-${i}`]));
    steps.slice(1).forEach((step, i) => assert.ok(name === 'light' ? step < steps[i] : step > steps[i], `heat-${i + 1}`));
  });
}
