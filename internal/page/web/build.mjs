// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Builds the page into ../assets, which the exporter embeds. The output depends on the
// sources and the versions in package-lock.json only, so CI compares it byte by byte.
import {build} from 'esbuild';
import {copyFile, mkdir, readFile, rm, writeFile} from 'node:fs/promises';

const out = process.argv[2] ?? '../assets';
await rm(out, {recursive: true, force: true});
await mkdir(out, {recursive: true});
await build({
  entryPoints: {page: 'src/main.ts', style: 'src/style/page.css'},
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022', 'chrome109', 'firefox115', 'safari16'],
  legalComments: 'none', // licenses.txt has them
  logLevel: 'warning',
});
for (const file of ['index.html', 'favicon.svg']) await copyFile(`src/${file}`, `${out}/${file}`);
const uplot = JSON.parse(await readFile('node_modules/uplot/package.json', 'utf8'));
const license = await readFile('node_modules/uplot/LICENSE', 'utf8');
await writeFile(`${out}/licenses.txt`, `page.js and style.css contain uPlot ${uplot.version}, https://github.com/leeoniya/uPlot\n\n${license}`);
