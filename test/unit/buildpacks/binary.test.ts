import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workspace } from './buildpack-run.ts';

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

test('the only executable becomes the web process', async () => {
  workspace.write('my "app"', '#!/bin/sh\n', 0o755);
  workspace.write('data.txt', 'no program', 0o755);
  expect((await workspace.build('binary')).output).toBe('kf/binary: web process: ./my "app"\n');
  expect(workspace.layerFile('launch.toml')).toBe('[[processes]]\ntype = "web"\ncommand = ["./my \\"app\\""]\ndefault = true\n');
});

test('with two executables there is no web process, and the log says how to name one', async () => {
  workspace.write('one', '#!/bin/sh\n', 0o755);
  workspace.write('two', '#!/bin/sh\n', 0o755);
  const result = await workspace.build('binary');
  expect(result.code).toBe(0);
  expect(result.output).toContain('2 executables and no Procfile: name the one to start');
  expect(workspace.layerFile('launch.toml')).toBe('');
});

test('with a Procfile and several executables the Procfile names the processes', async () => {
  workspace.write('one', '#!/bin/sh\n', 0o755);
  workspace.write('two', '#!/bin/sh\n', 0o755);
  workspace.write('Procfile', 'web: ./two\n');
  expect((await workspace.build('binary')).output).toBe('kf/binary: the processes come from the Procfile\n');
});
