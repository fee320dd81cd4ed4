import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const fileOf = (name: string): string => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');
const transcript = fileOf('test/fixtures/session/transcript.txt');

/** Commands that change the installation or this machine, or print something else with --json. */
const elsewhere = ['setup', 'uninstall', 'rotate', 'install-plugin', 'uninstall-plugin', 'plugins', 'migrate', 'curl', 'logs'];
test('the session has at least 200 commands', () => {
  expect(transcript.match(/^\$ /gm)?.length).toBeGreaterThanOrEqual(200);
});

test('it compares the result of every command with its schema', () => {
  const { properties } = JSON.parse(fileOf('docs/json-schema.json')) as { properties: Record<string, unknown> };
  const compared = new Set([...transcript.matchAll(/^\$ cf ([\w-]+) ?.*--json\njson: a result of \1$/gm)].map(([, name]) => name));
  const lacking = Object.keys(properties).filter((name) => !compared.has(name) && !elsewhere.includes(name));
  expect(lacking).toEqual([]);
});
