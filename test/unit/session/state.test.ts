import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readState, saveState, stateFile, whereBeside, type TargetState } from '../../../src/lib/session/state.ts';

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

  it('returns the saved values, is private and leaves no other file', () => {
    const env = { CF_HOME: home };
    expect(saveState(env, state)).toBeUndefined();
    expect(readState(env)).toEqual(state);
    expect(readdirSync(path.join(home, '.cf'))).toEqual(['config.json']);
    expect(statSync(stateFile(env)).mode & 0o777).toBe(0o600);
    expect(statSync(path.join(home, '.cf')).mode & 0o777).toBe(0o700);
  });

  it.each([
    ["cf's own", JSON.stringify({ ConfigVersion: 4, AccessToken: 'bearer x', RefreshToken: 'r', Target: 'https://api' })],
    ['what is no JSON', 'half a fi'],
  ])('of another program (%s) is not changed, and the target is saved and found beside it', (_, text) => {
    const env = { CF_HOME: home };
    const [shared, own] = [path.join(home, '.cf', 'config.json'), path.join(home, '.cf', 'kf.json')];
    mkdirSync(path.join(home, '.cf'));
    writeFileSync(shared, text);
    expect(whereBeside(env)).toBe(`${shared} is not of kf and stays as it is; kf remembers its target in ${own}.`);
    expect(saveState(env, state)).toBeUndefined();
    expect(readFileSync(shared, 'utf8')).toBe(text);
    expect([stateFile(env), readState(env), whereBeside(env)]).toEqual([own, state, undefined]);
    expect(statSync(own).mode & 0o777).toBe(0o600);
    expect(saveState(env, {})).toBeUndefined();
    expect([readFileSync(shared, 'utf8'), readState(env)]).toEqual([text, {}]);
  });

  it.each(['', '{}\n', 'null'])('with nothing in it (%j) is used', (text) => {
    const env = { CF_HOME: home };
    mkdirSync(path.join(home, '.cf'));
    writeFileSync(path.join(home, '.cf', 'config.json'), text);
    expect(saveState(env, state)).toBeUndefined();
    expect(readdirSync(path.join(home, '.cf'))).toEqual(['config.json']);
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
