import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJsonOrFile } from '../../../src/lib/cf/json-or-file.ts';
import { parseChoice, parseList, parseSize, parseWholeNumber } from '../../../src/lib/cf/values.ts';

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
