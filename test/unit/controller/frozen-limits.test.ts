import { expect, test } from 'vitest';
import { remember } from '../../../src/controller/rollout/frozen-secrets.ts';
import { envLimits, envProblem, servicesIn } from '../../../src/controller/app-variables.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('an environment that is too large is refused with a sentence', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, 'eA==']));
  expect(envProblem(many(envLimits.variables))).toBeUndefined();
  expect(envProblem(many(1_001))).toBe('The app has 1001 environment variables; at most 1000 are possible.');
  expect(envProblem({ A: 'x'.repeat(envLimits.characters) })).toBe("The app's environment has more than 525 KiB.");
  expect(envProblem({ A: 'x'.repeat(envLimits.characters) }, 'It')).toBe('It has more than 525 KiB.');
});

test.each(['', 'null', '[', '"x"', '{"a":[null,5,{"credentials":null}]}'])(
  'a VCAP_SERVICES that a developer wrote lists no service: %s',
  (text) => {
    let listed: unknown[] = [];
    try {
      listed = servicesIn(base64(text));
    } catch (error) {
      expect((error as Error).message).toBe('VCAP_SERVICES of the app is no JSON object; it is being written again.');
    }
    expect(listed).toEqual([]);
  },
);

test('the copies of a generation are cached up to a total size', () => {
  const known = new Map<string, Record<string, string>>();
  remember(known, 'large', { a: 'x'.repeat(200_000) });
  for (let index = 0; index < 10; index += 1) remember(known, `s${index}`, { a: 'x'.repeat(30_000) });
  expect([...known.keys()]).toEqual(['s0', 's1', 's2', 's3']);
  remember(known, 's0', { a: 'y' });
  expect(known.get('s0')).toEqual({ a: 'y' });
});
