import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJsonOrFile } from '../../../src/lib/cf/json-or-file.ts';
import { parseChoice, parseList, parsePattern, parseSince, parseSize, parseWholeNumber, timeSince } from '../../../src/lib/cf/values.ts';

describe('a value on the command line', () => {
  it.each([
    ['256M', 256],
    ['1g', 1024],
    ['2TB', 2 * 1024 * 1024],
  ])('can be the size %s', (text, megabytes) => {
    expect(parseSize(text)).toBe(megabytes);
  });

  it.each(['', '256', '1.5G', 'lots', '0M', '-5', '12Q'])('cannot be the size %j', (text) => {
    expect(() => parseSize(text)).toThrow('Byte quantity must be an integer with a unit of measurement like M, MB, G, or GB');
  });

  it('can be a whole number from a minimum on', () => {
    expect(parseWholeNumber('0', '-i', 0)).toBe(0);
    expect(() => parseWholeNumber('-1', '-i', 0)).toThrow("invalid argument for flag '-i' (expected int >= 0)");
    expect(() => parseWholeNumber('2.5', '-i', 0)).toThrow('expected int');
  });

  it('can be a choice in any case', () => {
    expect(parseChoice('Rolling', '--strategy', ['rolling', 'canary'])).toBe('rolling');
    expect(() => parseChoice('blue', '--strategy', ['rolling', 'canary'])).toThrow('--strategy must be "rolling" or "canary"');
  });

  it.each([
    ['90s', '2026-01-31T11:58:30.000Z'],
    ['1h30m', '2026-01-31T10:30:00.000Z'],
    ['2d', '2026-01-29T12:00:00.000Z'],
    ['2026-01-31T10:00:00+02:00', '2026-01-31T08:00:00.000Z'],
  ])('can be the time %s', (text, at) => {
    expect(timeSince(parseSince(text), Date.parse('2026-01-31T12:00:00Z')).toISOString()).toBe(at);
  });

  it.each(['', 'soon', '10', '10 m', '-5m', '5x'])('cannot be the time %j', (text) => {
    expect(() => parseSince(text)).toThrow(
      `--since must be a duration (90s, 10m, 2h, 1d) or a time (2026-01-31T10:00:00Z); it is '${text}'`,
    );
  });

  it('can be a regular expression', () => {
    expect(parsePattern('^err.r', '--grep').test('error two')).toBe(true);
    expect(() => parsePattern('(', '--grep')).toThrow('--grep must be a regular expression');
  });

  it('can be a list with commas', () => {
    expect(parseList(' a, b ,,c')).toEqual(['a', 'b', 'c']);
  });

  it('can be JSON, as text or as the name of a file', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kf-json-'));
    const file = path.join(folder, 'credentials.json');
    writeFileSync(file, '{"uri":"x"}');
    expect(await readJsonOrFile('{"a":1}', '-p')).toEqual({ a: 1 });
    expect(await readJsonOrFile(file, '-p')).toEqual({ uri: 'x' });
    expect(await readJsonOrFile('username,password', '-p')).toBeUndefined();
    writeFileSync(file, '[1]');
    await expect(readJsonOrFile(file, '-p')).rejects.toThrow('holds no JSON object');
    await expect(readJsonOrFile('/dev/zero', '-p')).rejects.toThrow("The file '/dev/zero' is larger than 1 MB");
    rmSync(folder, { recursive: true });
  });
});
