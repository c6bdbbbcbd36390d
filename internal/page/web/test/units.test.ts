// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// @ts-nocheck: Node.js has no types here
import assert from 'node:assert/strict';
import test from 'node:test';
import './document';
import {pace as refresh} from '../src/section';
import {amount, count, dates, duration, pace, percent, roundBelow, roundDuration, roundPercent, span, standAt} from '../src/units';

const cases = (name, format, rows) => test(name, () => rows.forEach(([value, text]) => assert.equal(format(value), text)));

cases('durations have three digits and a unit that fits', duration, [
  [0.00042, '0.420 ms'], [0.0072, '7.20 ms'], [0.2124, '212 ms'], [0.9994, '999 ms'], [0.9996, '1.00 s'], [1.294, '1.29 s'], [22, '22.0 s'], [599, '599 s'], [900, '15.0 min'], [9000, '2.50 h'],
]);
cases('a missing number is not zero', duration, [[null, '–'], [undefined, '–'], [NaN, '–'], [0, '0 s']]);
cases('a time per token has its speed as the second number', pace, [[0.025, '25.0 ms · 40.0 tok/s'], [1 / 60, '16.7 ms · 60.0 tok/s'], [0.0004, '0.400 ms · 2,500 tok/s'], [4, '4.00 s · 0.250 tok/s'], [0, '0 s'], [null, '–']]);
cases('ticks are short', roundDuration, [[0, '0'], [0.25, '250 ms'], [0.00005, '50 µs'], [5, '5 s'], [300, '5 min']]);
cases('a logarithmic axis begins at 1, 2 or 5', roundBelow, [[0.0097, 0.005], [0.05, 0.05], [1, 1], [0.0012, 0.001], [13, 10], [0.000029, 0.00002]]);
cases('counts', count, [[0, '0'], [7, '7'], [1234, '1,234'], [12345, '12.3k'], [2_880_000, '2.88M']]);
cases('rates', amount, [[0.0314, '0.0314'], [8.54, '8.54'], [99.96, '100'], [2599.4, '2,599']]);
cases('shares near one keep the digits that matter', percent, [[1, '100%'], [0, '0%'], [0.93, '93.0%'], [0.9993, '99.93%'], [0.999999, '99.999%'], [-0.12, '−12.0%'], [0.0004, '0.0400%']]);
cases('budgets are short', roundPercent, [[1 - 0.99, '1%'], [1 - 0.999, '0.1%'], [0.25, '25%']]);
const at = (date, hour) => new Date(2026, 0, date, hour).getTime() / 1000;
const since = ([from, to]) => span(from, to);
cases('a range before the last six days names its dates', since, [[[at(3, 8), at(3, 10)], '3 Jan 2026, 08:00:00 to 10:00:00'], [[at(3, 22), at(4, 2)], '3 Jan 2026, 22:00:00 to 4 Jan 2026, 02:00:00']]);
cases('a range that stands still names its dates', ([from, to]) => dates(from, to), [[[at(3, 8), at(3, 10)], '3 Jan 2026, 08:00:00 to 10:00:00'], [[at(3, 22), at(4, 2)], '3 Jan 2026, 22:00:00 to 4 Jan 2026, 02:00:00']]);
test('a range of the last six days names its days, of other days than the present', () => {
  standAt(at(8, 12));
  assert.equal(since([at(3, 13), at(3, 14)]), 'Sat 13:00:00 to 14:00:00');
  assert.equal(since([at(3, 22), at(4, 2)]), 'Sat 22:00:00 to Sun 02:00:00');
  assert.equal(since([at(8, 1), at(8, 2)]), '01:00:00 to 02:00:00');
});
cases('long ranges load again less often', refresh, [['5m', 5000], ['90s', 5000], ['1h', 15_000], ['24h', 60_000], ['7d', 60_000], ['1d12h', 60_000]]);
