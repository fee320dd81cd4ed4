import { describe, expect, test } from 'vitest';
import { parseManifest } from '../../../src/lib/manifest/parse.ts';
import { readVariables } from '../../../src/lib/manifest/variables.ts';

const manifest = (body: string, flags: string[], files: { path: string; text: string }[] = []) =>
  parseManifest('manifest.yml', `applications:\n- ${body}\n`, readVariables(files, flags)).apps[0];

describe('a placeholder that is the whole value', () => {
  test('gets the type of its variable', () => {
    const app = manifest('{name: ((name)), instances: ((n)), buildpacks: ((list)), no-route: ((off))}', [
      'name=shop',
      'n=3',
      'list=[a, b]',
      'off=true',
    ]);
    expect(app).toMatchObject({ name: 'shop', buildpacks: ['a', 'b'], noRoute: true, processes: [{ instances: 3 }] });
  });

  test('selects values of maps with dots', () => {
    expect(manifest('{name: ((app.name))}', [], [{ path: 'vars.yml', text: 'app: {name: shop}' }])?.name).toBe('shop');
  });
});

describe('a placeholder inside a text or a key', () => {
  test('accepts text and whole numbers', () => {
    expect(manifest('{name: a, env: {((key)): "((host)):((port))"}}', ['key=URL', 'host=db', 'port=5432'])?.env).toEqual({
      URL: 'db:5432',
    });
  });

  test('refuses any other value and names the position', () => {
    expect(() => manifest('{name: "a-((list))"}', ['list=[1]'])).toThrow(
      "manifest.yml:2:10: Variable 'list' stands inside a text and must be a text or a whole number.",
    );
  });
});

describe('variables', () => {
  test('that are missing are all named, sorted', () => {
    expect(() => manifest('{name: ((b)), stack: "x((a))((b))"}', [])).toThrow(/^Expected to find variables: a, b$/);
  });

  test('of later files have priority, and flags have priority over files', () => {
    const files = [
      { path: '1.yml', text: 'a: one\nb: one\nc: one' },
      { path: '2.yml', text: 'b: two\nc: two' },
    ];
    expect(manifest('{name: x, buildpacks: [((a)), ((b)), ((c))]}', ['c=three'], files)?.buildpacks).toEqual(['one', 'two', 'three']);
  });

  test.each([
    ['v="quoted"', 'quoted'],
    ["v='1'", '1'],
    ['v=a: b: c', 'a: b: c'],
    ['v=x=y', 'x=y'],
    ['v=*glob', '*glob'],
  ])('--var %s sets the text %j', (flag, text) => {
    expect(manifest('{name: a, env: {V: ((v))}}', [flag])?.env).toEqual({ V: text });
  });

  test('need a name and a value', () => {
    expect(() => readVariables([], ['nothing'])).toThrow("Incorrect Usage: Expected var 'nothing' to be in format 'key=value'");
  });

  test('are not replaced inside their values', () => {
    expect(manifest('{name: a, env: {V: ((v))}}', ['v=((w))'])?.env).toEqual({ V: '((w))' });
  });

  test('must be a map', () => {
    expect(() => readVariables([{ path: 'vars.yml', text: '- a' }], [])).toThrow(
      'vars.yml:1:1: A file of variables is a map of names to values.',
    );
  });

  test('are reported at the position of their placeholder if their value is wrong', () => {
    expect(() => manifest('{name: a, memory: ((m))}', ['m=12'])).toThrow('manifest.yml:2:21: memory must use a supported unit');
  });
});
