import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readState, saveState, stateFile, type TargetState } from '../../../src/lib/session/state.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'kf-state-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const state: TargetState = {
  context: 'c',
  server: 'https://s',
  kubeconfigUser: 'k',
  user: 'alice',
  userOf: 'k',
  org: { name: 'o', guid: 'og' },
  space: { name: 's', guid: 'sg' },
};

describe('the state file', () => {
  it.each([
    [{ CF_HOME: '/x', XDG_CONFIG_HOME: '/y', HOME: '/z' }, '/x/.cf/config.json'],
    [{ CF_HOME: '', XDG_CONFIG_HOME: '/y', HOME: '/z' }, '/y/kf/config.json'],
    [{ HOME: '/z' }, '/z/.config/kf/config.json'],
  ])('with %j is %s', (env, expected) => {
    expect(stateFile(env)).toBe(expected);
  });

  it('gives back what was saved, is private and leaves no other file', () => {
    const env = { CF_HOME: home };
    expect(saveState(env, state)).toBeUndefined();
    expect(readState(env)).toEqual(state);
    expect(readdirSync(path.join(home, '.cf'))).toEqual(['config.json']);
    expect(statSync(stateFile(env)).mode & 0o777).toBe(0o600);
    expect(statSync(path.join(home, '.cf')).mode & 0o777).toBe(0o700);
  });

  it.each([
    ['nothing', undefined],
    ['broken JSON', '{'],
    ["cf's own", JSON.stringify({ ConfigVersion: 4, Target: 'https://api', OrganizationFields: { Name: 'o', GUID: 'g' } })],
    ['another version', JSON.stringify({ ConfigVersion: 99, Kf: { Context: 'c' } })],
  ])('with %s in it counts as no target', (_, text) => {
    mkdirSync(path.join(home, '.cf'));
    if (text !== undefined) writeFileSync(path.join(home, '.cf', 'config.json'), text);
    expect(readState({ CF_HOME: home })).toEqual({});
  });
});
