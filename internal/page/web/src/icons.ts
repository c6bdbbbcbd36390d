// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

const paths = {
  pulse: 'M1 9h3l2-6 4 10 2-6h3',
  check: 'M3 8.5l3.2 3.2L13 5',
  warning: 'M8 2l6.5 11.5h-13zM8 6.5v3.2M8 11.6v.2',
  cross: 'M4 4l8 8M12 4l-8 8',
  minus: 'M3 8h10',
  dot: 'M8 5a3 3 0 1 0 .01 0z',
  sun: 'M8 5.2a2.8 2.8 0 1 0 .01 0zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9L13 13M13 3l-1.1 1.1M4.1 11.9L3 13',
  moon: 'M13.5 9.6A6 6 0 1 1 6.4 2.5a4.8 4.8 0 0 0 7.1 7.1z',
} as const;

export type IconName = keyof typeof paths;

/** Creates an icon that assistive technology skips: the text beside it says the same. */
export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  for (const [key, value] of Object.entries({d: paths[name], fill: name === 'dot' ? 'currentColor' : 'none', stroke: 'currentColor', 'stroke-width': '1.8', 'stroke-linecap': 'round', 'stroke-linejoin': 'round'})) path.setAttribute(key, value);
  svg.append(path);
  return svg;
}
