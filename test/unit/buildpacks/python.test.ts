import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Workspace } from './buildpack-run.ts';

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

describe('the web process', () => {
  test.each(['main.py', 'app.py', 'server.py'])('is %s', async (file) => {
    workspace.write(file, '');
    expect((await workspace.build('python')).output).toContain(`kf/python: web process: python3 ${file}\n`);
    expect(workspace.layerFile('launch.toml')).toBe(`[[processes]]\ntype = "web"\ncommand = ["python3", "${file}"]\ndefault = true\n`);
  });

  test('comes from the Procfile if there is one', async () => {
    workspace.write('main.py', '');
    workspace.write('Procfile', 'web: python worker.py\n');
    expect((await workspace.build('python')).output).toContain('kf/python: the processes come from the Procfile\n');
    expect(workspace.layerFile('launch.toml')).toBe('');
  });

  test('is missing without a file of these names, and the log says how to name a command', async () => {
    workspace.write('tool.py', '');
    const result = await workspace.build('python');
    expect([result.code, result.output]).toEqual([0, expect.stringContaining('name the command (kf push -c COMMAND)\n')]);
  });
});

test('the app writes its output at once and finds the packages of its layer', async () => {
  workspace.write('main.py', '');
  await workspace.build('python');
  expect(workspace.layerFile('environment/env.launch/PYTHONUNBUFFERED.default')).toBe('1');
  expect(workspace.layerFile('environment/env.launch/PYTHONUSERBASE.override')).toBe(`${workspace.layers}/packages`);
  expect(workspace.layerFile('environment.toml')).toBe('[types]\nlaunch = true\n');
});

test.each([
  ['pyproject.toml', 'kf/python: no requirements.txt, so nothing is installed\n'],
  ['Pipfile', "kf/python: a Pipfile is not read, and nothing is installed: 'pipenv requirements > requirements.txt' writes what is\n"],
])('with only %s nothing is installed, and the log says so', async (file, text) => {
  workspace.write(file, '');
  const result = await workspace.build('python');
  expect([result.code, result.output]).toEqual([0, expect.stringContaining(text)]);
  expect(workspace.layerFile('packages.toml')).toBe('');
});
