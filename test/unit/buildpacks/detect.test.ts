import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Workspace } from './buildpack-run.ts';

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

describe('an app that no buildpack matches', () => {
  test.each([
    ['nodejs', 'kf/nodejs: looked for package.json'],
    ['go', 'kf/go: looked for go.mod'],
    ['python', 'kf/python: looked for requirements.txt'],
    ['procfile', 'kf/procfile: looked for Procfile'],
    ['staticfile', 'kf/staticfile: looked for Staticfile or index.html'],
    ['binary', 'kf/binary: looked for Procfile or an executable file'],
  ])('is refused by %s, which says what it looked for', async (buildpack, text) => {
    workspace.write('README.md', 'nothing to run');
    const result = await workspace.detect(buildpack);
    expect(result.code).toBe(100);
    expect(result.output).toContain(text);
  });
});

test.each([
  ['nodejs', 'package.json'],
  ['go', 'go.mod'],
  ['python', 'requirements.txt'],
  ['python', 'setup.py'],
  ['python', 'pyproject.toml'],
  ['python', 'Pipfile'],
  ['procfile', 'Procfile'],
  ['staticfile', 'Staticfile'],
  ['staticfile', 'index.html'],
  ['binary', 'Procfile'],
])('%s accepts an app with %s', async (buildpack, file) => {
  workspace.write(file, '');
  expect(await workspace.detect(buildpack)).toEqual({ code: 0, output: '' });
});

test('python does not accept a site whose tools are in requirements.txt', async () => {
  workspace.write('requirements.txt', 'mkdocs\n');
  workspace.write('Staticfile', 'root: site\n');
  expect((await workspace.detect('python')).code).toBe(100);
});

test('staticfile finds index.html in the folder that the build environment names', async () => {
  workspace.write('public/index.html', '<p>');
  expect((await workspace.detect('staticfile')).code).toBe(100);
  expect((await workspace.detect('staticfile', { BP_WEB_SERVER_ROOT: 'public' })).code).toBe(0);
});

test('binary accepts a script with an interpreter line and an ELF file', async () => {
  workspace.write('run', '#!/bin/sh\n', 0o755);
  expect((await workspace.detect('binary')).code).toBe(0);
  const other = new Workspace();
  other.write('app', '\u007fELF\u0002\u0001', 0o755);
  expect((await other.detect('binary')).code).toBe(0);
  rmSync(other.root, { recursive: true });
});

test.each([
  ['a file that is not executable', 'run', '#!/bin/sh\n', 0o644],
  ['an executable file that the kernel cannot start', 'notes.txt', 'just text\n', 0o755],
  ['the wrapper of a build tool', 'mvnw', '#!/bin/sh\n', 0o755],
])('binary does not accept %s', async (_, name, content, mode) => {
  workspace.write(name, content, mode);
  expect((await workspace.detect('binary')).code).toBe(100);
});
