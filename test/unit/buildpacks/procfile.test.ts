import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workspace } from './buildpack-run.ts';

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

test('each line becomes a process that a shell starts, and web is the default', async () => {
  workspace.write('Procfile', '# comment\n\nweb: node server.js --port $PORT\nworker-1:   echo "a\\tb" | cat\r\n');
  expect((await workspace.build('procfile')).code).toBe(0);
  expect(workspace.layerFile('launch.toml')).toBe(
    [
      '[[processes]]\ntype = "web"\ncommand = ["bash", "-c", "node server.js --port $PORT"]\ndefault = true\n',
      '[[processes]]\ntype = "worker-1"\ncommand = ["bash", "-c", "echo \\"a\\\\tb\\" | cat"]\ndefault = false\n',
      '',
    ].join('\n'),
  );
});

test('the last line counts without a line break at its end', async () => {
  workspace.write('Procfile', 'web: ./run');
  const result = await workspace.build('procfile');
  expect(result.output).toBe('kf/procfile: process web: ./run\n');
  expect(workspace.layerFile('launch.toml')).toContain('"./run"');
});

test.each([
  ['a line without a colon', 'web: a\nworker', 'line 2'],
  ['a type without a command', 'web:\n', 'line 1'],
  ['a type with a blank in it', 'my web: a\n', 'line 1'],
  ['a type named twice', 'web: a\nweb: b\n', "line 2: process type 'web' is already there"],
  ['no process at all', '# nothing\n', 'names no process'],
])('%s fails the build and is named', async (_, content, text) => {
  workspace.write('Procfile', content);
  const result = await workspace.build('procfile');
  expect(result.code).toBe(1);
  expect(result.output).toContain(text);
});
