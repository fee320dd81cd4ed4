import { describe, expect, test } from 'vitest';
import { compareVersions, parseKfInfo, requireCompatible, requireSafeDowngrade } from '../../../src/lib/api/kf-info.ts';

const info = {
  format: 1,
  oldestCli: '0.1.0',
  controller: { version: '0.1.0', namespace: 'kf-system' },
  registry: {},
  builder: {},
  defaultDomain: 'apps.localhost',
  gateway: {},
  processDefaults: {},
  staging: {},
};

test('a complete description is accepted, with defaults for optional values', () => {
  expect(parseKfInfo(JSON.stringify(info))).toMatchObject({ root: 'cf', drainSeconds: 4, defaultDomain: 'apps.localhost' });
});

test('a newer format is refused before any other value is read', () => {
  expect(() => parseKfInfo('{"format": 2}')).toThrow(
    'This kf is too old for the cluster: it knows format 1 of kf-info, the cluster has 2.',
  );
});

test('missing programs are named', () => {
  expect(() => parseKfInfo(JSON.stringify({ ...info, gateway: undefined, staging: undefined }))).toThrow(
    'does not contain gateway, staging',
  );
});

test('text that is not JSON causes a hint to run setup', () => {
  expect(() => parseKfInfo('{')).toThrow('is not valid JSON');
});

test('versions are compared as numbers', () => {
  expect(compareVersions('0.10.0', '0.9.1')).toBeGreaterThan(0);
  expect(compareVersions('v1.2.3-rc.1', '1.2.3')).toBe(0);
});

test('a CLI older than the installation allows is refused', () => {
  const parsed = parseKfInfo(JSON.stringify({ ...info, oldestCli: '0.3.0', controller: { version: '0.3.0', namespace: 'kf-system' } }));
  expect(() => requireCompatible(parsed, '0.2.9')).toThrow('This kf (0.2.9) is too old for the cluster');
  expect(() => requireCompatible(parsed, '0.3.0')).not.toThrow();
});

test('a controller older than the CLI needs is refused', () => {
  const parsed = parseKfInfo(JSON.stringify({ ...info, controller: { version: '0.0.9', namespace: 'kf-system' } }));
  expect(() => requireCompatible(parsed, '0.1.0')).toThrow("The cluster's controller (0.0.9) is too old for this kf (0.1.0)");
});

describe('a CLI and a controller', () => {
  const of = (version: string, oldestCli = '0.1.0') =>
    parseKfInfo(JSON.stringify({ ...info, oldestCli, controller: { version, namespace: 'kf-system' } }));

  test.each([
    ['0.4.0', '0.4.7'],
    ['0.3.9', '0.4.0'],
    ['0.5.0', '0.4.1'],
    ['1.0.0', '0.9.0'],
  ])('of versions %s and %s work together', (cli, controller) => {
    expect(() => requireCompatible(of(controller), cli)).not.toThrow();
  });

  test.each([
    ['0.3.9', '0.5.0', "This kf (0.3.9) is too old for the cluster's controller (0.5.0): they may be one release apart."],
    ['0.5.0', '0.3.9', "The cluster's controller (0.3.9) is too old for this kf (0.5.0): they may be one release apart."],
  ])('of versions %s and %s say in one sentence that they do not', (cli, controller, sentence) => {
    expect(() => requireCompatible(of(controller), cli)).toThrow(sentence);
  });

  test('setup goes back by one release, not by two', () => {
    expect(() => requireSafeDowngrade(of('0.5.0'), '0.4.0')).not.toThrow();
    expect(() => requireSafeDowngrade(of('0.5.0'), '0.3.0')).toThrow(
      'The cluster has kf 0.5.0; setup can go back by one release at a time, not to 0.3.0.',
    );
  });
});
