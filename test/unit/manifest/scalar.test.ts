import { describe, expect, test } from 'vitest';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';
import { plainScalar } from '../../../src/lib/manifest/scalar.ts';

/** The plain scalars of the YAML specifications 1.1 and 1.2 and of the YAML test suite, and the results of Go's YAML for each. */
const scalars: [written: string, value: string | number | boolean | null][] = [
  ...['', '~', 'null', 'Null', 'NULL'].map((word): [string, null] => [word, null]),
  ...['true', 'True', 'TRUE', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'].map((word): [string, boolean] => [word, true]),
  ...['false', 'False', 'FALSE', 'no', 'No', 'NO', 'off', 'Off', 'OFF'].map((word): [string, boolean] => [word, false]),
  // Texts, although some version of YAML reads them as another type.
  ...['.', '..', './', '-', '--', '+', '.e1', '._', '-.', '+.', '=', '/'].map((word): [string, string] => [word, word]),
  ...['y', 'Y', 'n', 'N', 'tRUE', 'nULL', 'oN', 'none', 'nil', 'undefined'].map((word): [string, string] => [word, word]),
  ...['.inf', '-.Inf', '+.INF', '.nan', '.NaN', '.NAN', 'Infinity', 'NaN', 'inf', 'nan'].map((word): [string, string] => [word, word]),
  ...[
    '12:30:45',
    '190:20:30',
    '20:30.15',
    '2001-01-01',
    '2001-12-14t21:59:43.10-05:00',
    '2002-12-14',
    '10.0.0.1',
    '1.2.3',
    'v1',
    '1e',
    '1e+',
    '0x',
    '0b2',
    '0xyz',
    '09.5x',
    '1_000x',
    '256M',
    '1G',
    '-1x',
  ].map((word): [string, string] => [word, word]),
  // Numbers.
  ['0', 0],
  ['-0', -0],
  ['7', 7],
  ['+12', 12],
  ['-19', -19],
  ['1_000', 1000],
  ['685_230', 685230],
  ['0o17', 15],
  ['017', 15],
  ['-017', -15],
  ['08', 8],
  ['0x1F', 31],
  ['0x_0A_74_AE', 685230],
  ['0b1010', 10],
  ['1e3', 1000],
  ['1.5', 1.5],
  ['1.10', 1.1],
  ['.5', 0.5],
  ['1.', 1],
  ['-2E+05', -200000],
  ['+12e03', 12000],
  ['6.8523015e+5', 685230.15],
];

describe('a plain scalar', () => {
  test.each(scalars)('%j is read as %j', (written, value) => {
    expect(plainScalar(written)).toBe(value);
  });

  const writable = scalars.filter(([written]) => !['', '-', '--'].includes(written));

  test.each(writable)('%j stays as it is written if text is expected', (written, value) => {
    const {
      apps: [app],
    } = parseManifest(
      'manifest.yml',
      `applications:\n- name: a\n  path: ${written}\n  env:\n    E: ${written}\n  metadata: {annotations: {a: ${written} }}\n`,
    );
    expect(app?.path).toBe(value === null ? undefined : written);
    expect(app?.env).toEqual({ E: value === null ? '' : written });
    expect(app?.annotations).toEqual({ a: value === null ? null : written });
  });

  test.each(writable.filter(([, value]) => value !== null))('%j is parsed in the parameters of a service', (written, value) => {
    const {
      apps: [app],
    } = parseManifest('manifest.yml', `applications:\n- name: a\n  services: [{name: s, parameters: {p: ${written} }}]\n`);
    expect(app?.services).toEqual([{ name: 's', parameters: { p: value } }]);
  });

  test('that is quoted or tagged has the type of its quotes or tag', () => {
    const {
      apps: [app],
    } = parseManifest(
      'm',
      `applications: [{name: a, env: {A: "1e3", B: 'yes', C: !!str 0x1F, D: "~", E: |-\n  no\n  }}]`.replace('E: |-\n  no\n  ', 'E: !!str'),
    );
    expect(app?.env).toEqual({ A: '1e3', B: 'yes', C: '0x1F', D: '~', E: '' });
  });

  test('that is a number keeps its digits, however many', () => {
    const long = '1'.repeat(500);
    const {
      apps: [app],
    } = parseManifest('m', `applications: [{name: a, env: {A: ${long}, B: 12345678901234567890, C: 1.10}}]`);
    expect(app?.env).toEqual({ A: long, B: '12345678901234567890', C: '1.10' });
  });

  test.each([
    ['010', 8],
    ['0x2', 2],
    ['1_0', 10],
    ['"3"', 3],
    ['1e1', 10],
  ])('%s is a number of instances', (written, instances) => {
    const {
      apps: [app],
    } = parseManifest('m', `applications: [{name: a, instances: ${written}}]`);
    expect(app?.processes[0]?.instances).toBe(instances);
  });
});
