import { expect, test } from 'vitest';
import { renderEnv } from '../../../src/lib/views/env.ts';

const texts = (env: Parameters<typeof renderEnv>[0]): string => JSON.stringify(renderEnv(env));
const none = { vcapServices: {}, vcapApplication: {}, variables: {} };

test('an app without variables is shown without any, and one whose Secrets are gone is shown as missing them', () => {
  expect(texts(none)).toContain('No user-provided env variables have been set');
  expect(texts(none)).toContain('No system-provided env variables have been set');
  const lost = texts({ ...none, missing: { variables: 'a-env', vcapServices: 'a-vcap-services' } });
  expect(lost).toContain("User-provided env variables are missing: the Secret 'a-env' is gone.");
  expect(lost).toContain("System-provided env variables are missing: the Secret 'a-vcap-services' is gone.");
  expect(lost).not.toMatch(/No (user|system)-provided env variables have been set/);
});
