import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJsonOrFile } from '../../../src/lib/cf/json-or-file.ts';
import { parseChoice, parseList, parseSize, parseWholeNumber } from '../../../src/lib/cf/values.ts';

describe('values on a command line', () => {
  it.each([
    ['256M', 256],
    ['1g', 1024],
    ['2TB', 2 * 1024 * 1024],
  ])('takes the size %s', (text, megabytes) => {
    expect(parseSize(text)).toBe(megabytes);
  });

  it.each(['', '256', '1.5G', 'lots', '0M', '-5', '12Q'])('refuses the size %j', (text) => {
    expect(() => parseSize(text)).toThrow('Byte quantity must be an integer with a unit of measurement like M, MB, G, or GB');
  });

  it('takes whole numbers from a least one on', () => {
    expect(parseWholeNumber('0', '-i', 0)).toBe(0);
    expect(() => parseWholeNumber('-1', '-i', 0)).toThrow("invalid argument for flag '-i' (expected int >= 0)");
    expect(() => parseWholeNumber('2.5', '-i', 0)).toThrow('expected int');
  });

  it('takes choices in any case', () => {
    expect(parseChoice('Rolling', '--strategy', ['rolling', 'canary'])).toBe('rolling');
    expect(() => parseChoice('blue', '--strategy', ['rolling', 'canary'])).toThrow('--strategy must be "rolling" or "canary"');
  });

  it('splits lists at commas', () => {
    expect(parseList(' a, b ,,c')).toEqual(['a', 'b', 'c']);
  });

  it('reads JSON from the text or from the file of that name', async () => {
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
