import { expect, test } from 'vitest';
import { parseIgnoreRules } from '../../../src/lib/source/cfignore.ts';

/** Each row: lines of .cfignore, ignored paths, paths that are pushed. */
const rows: [rule: string, lines: string, ignored: string[], kept: string[]][] = [
  ['a comment begins with # in the first column', '#a\nb', ['b'], ['a', '#a']],
  ['blank lines mean nothing', '\n   \na\n', ['a'], ['b', ' ']],
  ['spaces at both ends are trimmed', '  a  \r\n b c ', ['a', 'b c'], ['b']],
  ['the last match wins', 'a*\n!ab\nab', ['ax', 'ab'], ['b']],
  ['! brings back what an earlier line took', '*.log\n!keep.log', ['x.log', 'd/x.log'], ['keep.log', 'd/keep.log']],
  ['! before the line that it negates has no effect', '!keep.log\n*.log', ['keep.log'], []],
  ['a file comes back below an ignored folder', 'dir\n!dir/sub/keep', ['dir', 'dir/a', 'dir/sub'], ['dir/sub/keep']],
  ['a pattern without a leading slash floats', 'name', ['name', 'a/name', 'a/b/name'], ['names', 'a/rename']],
  ['also with a slash inside, unlike git', 'a/b', ['a/b', 'x/a/b', 'x/a/b/c'], ['a', 'b', 'a/x/b']],
  ['a leading slash anchors at the root', '/name', ['name', 'name/x'], ['a/name', 'names']],
  ['a name takes the entry and everything below', 'dir', ['dir', 'dir/a', 'dir/a/b', 'x/dir/a'], ['dira/b']],
  ['a name with a trailing slash leaves the entry itself', 'dir/', ['dir/a', 'dir/a/b', 'x/dir/a'], ['dir', 'x/dir']],
  ['* does not cross a slash', 'a*c', ['abc', 'ac', 'x/axxc'], ['ab/c', 'ab']],
  ['* stands for nothing too', '*.js', ['.js', 'a.js', 'a/b.js', 'a.js/x'], ['ajs', 'a.jsx']],
  ['**/ crosses folders', '**/b', ['b', 'a/b', 'a/x/b'], ['ab']],
  ['**/ inside a pattern', 'x**/b', ['xb', 'xa/b', 'xa/c/b'], ['x']],
  ['/** takes everything below, and the folder', 'a/**', ['a', 'a/b', 'a/b/c', 'x/a/b'], ['ab']],
  ['/**/ stands for one slash or folders between', 'a/**/b', ['a/b', 'a/x/b', 'a/x/y/b', 'z/a/b'], ['ab', 'a/xb']],
  ['/**/ in front floats', '/**/b', ['b', 'a/b'], ['ab']],
  ['dir/*.ext is anchored', 'dir/*.js', ['dir/a.js'], ['x/dir/a.js', 'dir/sub/a.js']],
  ['dir/sub/*.ext is anchored', 'dir/sub/*.js', ['dir/sub/a.js'], ['x/dir/sub/a.js']],
  ['dir/*ext without a dot floats', 'dir/*js', ['dir/a.js', 'x/dir/ajs'], ['dir/a/js']],
  ['? is itself', 'a?c', ['a?c'], ['abc', 'ac']],
  ['a dot is itself', 'a.c', ['a.c'], ['abc']],
  ['\\* is a star', 'a\\*', ['a*'], ['ab']],
  ['\\# is a hash', '\\#a', ['#a'], ['a']],
  ['# after spaces is dropped and no comment', ' #a', ['a'], ['#a']],
  ['a second ! is dropped', 'a*\n!!ab', ['ac'], ['ab']],
  ['brackets are regular-expression text', '[ab]c', ['ac', 'bc', 'x/ac'], ['cc', '[ab]c']],
  ['negated brackets are regular-expression text', 'x[^0-9]', ['xa'], ['x1']],
  ['parentheses are regular-expression text', '(a|b)c', ['ac', 'bc'], ['cc']],
  ['+ is regular-expression text', 'ab+', ['ab', 'abbb'], ['a', 'ab+c']],
  ['what is no regular expression matches nothing', '[a\n(b\nc++\nd', ['d'], ['[a', '(b', 'a', 'b', 'c', 'c++']],
  ['a backslash path of Windows is regular-expression text too', 'obj\\Release\nd', ['d'], ['obj', 'obj/Release', 'objRelease']],
  ['a lone slash takes everything', '/', ['a', 'a/b'], []],
  ['a lone star takes everything', '*', ['a', 'a/b'], []],
  ['a folder takes names with any character but a line feed', 'dir\n!kept', ['dir/Icon\r', 'dir/a\u2028b'], ['dir/kept', 'dir/a\nb']],
  ['names are not ASCII only', 'grüße/*', ['grüße/ä', 'x/grüße/日本'], ['grüße']],
];

test.each(rows)('%s', (_, lines, ignored, kept) => {
  const rules = parseIgnoreRules(lines);
  expect(ignored.filter((path) => !rules.ignores(path))).toEqual([]);
  expect(kept.filter((path) => rules.ignores(path))).toEqual([]);
});

const defaults = ['.cfignore', '.DS_Store', '.git', '.gitignore', '.hg', '.svn', '_darcs', 'manifest.yaml', 'manifest.yml'];

test.each(defaults)('%s is not pushed at any depth, and neither is anything below it', (name) => {
  const rules = parseIgnoreRules();
  for (const path of [name, `a/${name}`, `${name}/x`, `a/${name}/b/c`]) expect(rules.ignores(path)).toBe(true);
  for (const path of [`${name}x`, `x${name}`, `a/x${name}/b`]) expect(rules.ignores(path)).toBe(false);
});

test('a default cannot be negated', () => {
  expect(parseIgnoreRules('!manifest.yml\n!.git').ignores('manifest.yml')).toBe(true);
  expect(parseIgnoreRules('!manifest.yml').prunes('.git')).toBe(true);
});

test('an ignored folder is read only if a negated rule could match below it', () => {
  expect(parseIgnoreRules('node_modules').prunes('node_modules')).toBe(true);
  expect(parseIgnoreRules('node_modules').prunes('a/node_modules/b')).toBe(true);
  expect(parseIgnoreRules('node_modules').prunes('src')).toBe(false);
  expect(parseIgnoreRules('node_modules\n!node_modules/mine').prunes('node_modules')).toBe(false);
  expect(parseIgnoreRules('node_modules\nx$').prunes('node_modules')).toBe(false);
});

// A backtracking matcher would not end within the life of this machine.
test.each([
  ['nested repetition', '(a+)+b'],
  ['many stars', `${'*a'.repeat(20)}b`],
  ['many folders', `${'**/'.repeat(30)}b`],
  ['alternatives', '(a|aa)+b'],
  ['counts', 'a{1,16}a{1,16}a{1,16}a{1,16}a{1,16}a{1,16}b'],
])('%s is matched in a time that grows only with the name', (_, line) => {
  const rules = parseIgnoreRules(`${line}\nkept`);
  const name = `${'a'.repeat(250)}/`.repeat(15);
  expect(rules.ignores(`${name}c`)).toBe(false);
  expect(rules.ignores(`${name}kept`)).toBe(true);
});

test('a line that cannot be matched in that time is refused with its number', () => {
  expect(() => parseIgnoreRules('a\n(x{1,99}){1,99}')).toThrow(".cfignore: line 2 ('(x{1,99}){1,99}') repeats something too often");
  expect(() => parseIgnoreRules(`a\nb\n${'x/'.repeat(4000)}`)).toThrow('.cfignore: line 3 has more than 4096 characters.');
});

test('lookaround is not supported by cf, and matches nothing', () => {
  expect(parseIgnoreRules('(?=a)a\n(?<!b)a').ignores('a')).toBe(false);
});
