import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workspace } from './buildpack-run.ts';

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

test('the server is in a launch layer and serves the app folder by default', async () => {
  workspace.write('index.html', '<p>');
  expect((await workspace.build('staticfile')).code).toBe(0);
  expect(workspace.layerFile('server/bin/staticserver')).toBe('the web server');
  expect(workspace.layerFile('server.toml')).toBe('[types]\nlaunch = true\n');
  expect(workspace.layerFile('launch.toml')).toBe(
    '[[processes]]\ntype = "web"\ncommand = ["staticserver", "-root", "."]\ndefault = true\n',
  );
});

test('root and pushstate of the Staticfile are used, without quotes and CRLF', async () => {
  workspace.write('Staticfile', 'root: "dist"\r\npushstate: enabled\r\n');
  workspace.write('dist/index.html', '<p>');
  await workspace.build('staticfile');
  expect(workspace.layerFile('launch.toml')).toContain('command = ["staticserver", "-root", "dist", "-pushstate"]');
});

test('the Staticfile has priority over the build environment, and that over the default', async () => {
  workspace.write('Staticfile', '');
  workspace.write('public/index.html', '<p>');
  workspace.write('dist/index.html', '<p>');
  await workspace.build('staticfile', { BP_WEB_SERVER_ROOT: 'public' });
  expect(workspace.layerFile('launch.toml')).toContain('"-root", "public"');
  workspace.write('Staticfile', 'root: dist\n');
  await workspace.build('staticfile', { BP_WEB_SERVER_ROOT: 'public' });
  expect(workspace.layerFile('launch.toml')).toContain('"-root", "dist"');
});

test('a key without an effect is named and does not fail the build', async () => {
  workspace.write('Staticfile', 'ssi: enabled\n');
  const result = await workspace.build('staticfile');
  expect(result.code).toBe(0);
  expect(result.output).toContain("Staticfile key 'ssi' is not known here");
});

test.each([
  ['nowhere', 'does not exist'],
  ['../other', 'lies outside'],
  ['/etc', 'lies outside'],
  ['a/../../b', 'lies outside'],
])('the root %s fails the build: it %s', async (root, text) => {
  workspace.write('Staticfile', `root: ${root}\n`);
  const result = await workspace.build('staticfile');
  expect(result.code).toBe(1);
  expect(result.output).toContain(text);
});
