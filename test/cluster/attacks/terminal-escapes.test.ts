// Attacker: the author of an app, a build step or an object's name that another user prints on a terminal.

import path from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kubectlJson } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const folder = path.resolve('test/fixtures/apps/terminal-escapes');
const world = new TestWorld();
let space: string;
let attacker: Member;
let victim: Member;

beforeAll(async () => {
  const place = await world.space();
  space = place.space;
  [attacker, victim] = [await world.member('spaceDeveloper', place), await world.member('spaceDeveloper', place)];
});
afterAll(() => world.remove());

const colour = /\x1b\[[0-9;]*m/g;
/** Control sequences of the spinner: erase a line, move to a column or up, hide and show the cursor, draw at once. */
const spinner = /\x1b\[(?:[02]?K|\d*G|\d*A|\?25[lh]|\?2026[lh])/g;

/** Everything that a screen received except text, line ends and colours. */
function effectsOn(screen: string): string[] {
  const rest = screen.replaceAll('\r\n', '\n').replace(colour, '').replace(spinner, '');
  return [...rest.matchAll(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069].{0,20}/g)].map(([found]) =>
    JSON.stringify(found),
  );
}

/** The fixture's output has arrived and is visible. The lifecycle removes only escape characters from a build's lines. */
function expectShown(screen: string, where: 'app' | 'build'): void {
  expect(effectsOn(screen)).toEqual([]);
  const escape = where === 'app' ? '^[]' : '';
  for (const text of [
    String.raw`${where}: \x9b2J\x9d0;OWNED-c1\x9c`,
    `${where}: visible^Mhidden`,
    String.raw`${where}: user\u202egpj.exe`,
    `${where}: ${escape}0;OWNED-unfinished`,
    where === 'app' ? `${where}: \x1b[32mgreen\x1b[0m` : `${where}: green`,
  ]) {
    expect(screen).toContain(text);
  }
}

describe('nothing but colours reaches the terminal', () => {
  test('from a build and an app, in push and logs', async () => {
    const pushed = await victim.kf.onTerminal(['push', 'escapes', '-p', folder, '-m', '64M'], 100);
    expect(pushed.code, pushed.screen).toBe(0);
    expectShown(pushed.screen, 'build');
    const logs = await victim.kf.onTerminal(['logs', 'escapes', '--recent'], 100);
    expect(logs.code).toBe(0);
    expectShown(logs.screen, 'app');
  });

  test('from the last lines of a crash', async () => {
    const { code, screen } = await victim.kf.onTerminal(['push', 'escapes', '-p', folder, '-m', '64M', '-c', 'node crash.js'], 100);
    expect(code).toBe(1);
    expectShown(screen, 'app');
  });

  test('from the names of objects', async () => {
    const displayName = 'db\x1b]0;OWNED-name\x07\x1b[2J\r\n\u202eFAILED';
    const name = randomUUID();
    const made = await attacker.kubectl(['create', '-f', '-'], {
      apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
      kind: 'CFServiceInstance',
      metadata: { name, namespace: space },
      spec: { displayName, type: 'user-provided', secretName: name, planGuid: '', tags: [] },
    });
    expect(made.code, made.stderr).toBe(0);
    expect(await kubectlJson('get', 'cfserviceinstance', '-n', space, name)).toMatchObject({ spec: { displayName } });
    const { code, screen } = await victim.kf.onTerminal(['services'], 100);
    expect(code).toBe(0);
    expect(effectsOn(screen)).toEqual([]);
    expect(screen).toContain(String.raw`db^[]0;OWNED-name^G^[[2J^M\n\u202eFAILED`);
    await attacker.kubectl(['delete', 'cfserviceinstance', '-n', space, name, '--wait=false']);
  });
});

describe('output that does not go to a terminal', () => {
  test('is unchanged in a pipe, and is escaped with --json', async () => {
    const { stdout } = await victim.kf.ok('logs', 'escapes', '--recent');
    expect(stdout).toContain('app: \x1b]52;c;T1dORUQ=\x1b\\\n');
    expect(stdout).toContain('app: user\u202egpj.exe\n');
    const json = await victim.kf.ok('logs', 'escapes', '--recent', '--json');
    expect(effectsOn(json.stdout)).toEqual([]);
    const texts = json.stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { text: string }).text);
    expect(texts).toContain('app: \x1b]52;c;T1dORUQ=\x1b\\');
    expect(texts).toContain('app: \x9b2J\x9d0;OWNED-c1\x9c');
  });
});
