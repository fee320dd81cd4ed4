import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workspace } from './buildpack-run.ts';

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => rmSync(workspace.root, { recursive: true, force: true }));

async function webCommand(manifest: object): Promise<string | undefined> {
  workspace.write('package.json', JSON.stringify(manifest));
  const result = await workspace.build('nodejs');
  expect(result).toMatchObject({ code: 0 });
  return /^command = (.*)$/m.exec(workspace.layerFile('launch.toml'))?.[1];
}

test.each([
  ['a plain start script runs without npm and without a shell', 'node  server.js --port 8080', '["node", "server.js", "--port", "8080"]'],
  ['a start script with a variable runs in a shell', 'node server.js $PORT', '["bash", "-c", "node server.js $PORT"]'],
  ['a start script that sets a variable runs in a shell', 'A=1 node "my server.js"', '["bash", "-c", "A=1 node \\"my server.js\\""]'],
])('%s', async (_, start, command) => {
  expect(await webCommand({ scripts: { start } })).toBe(command);
});

test('a prestart script runs before the start script', async () => {
  expect(await webCommand({ scripts: { prestart: 'node migrate.js', start: 'node server.js' } })).toBe(
    '["bash", "-c", "node migrate.js && node server.js"]',
  );
});

test('without a start script server.js is started, and without it the file that "main" names', async () => {
  workspace.write('index.js', '');
  expect(await webCommand({ main: 'index.js' })).toBe('["node", "index.js"]');
  workspace.write('server.js', '');
  expect(await webCommand({ main: 'index.js' })).toBe('["node", "server.js"]');
});

test('without anything to start there is no web process, and the log says why', async () => {
  workspace.write('package.json', '{"main": "gone.js"}');
  const result = await workspace.build('nodejs');
  expect(result.code).toBe(0);
  expect(result.output).toContain('no web process: package.json has no start script');
  expect(workspace.layerFile('launch.toml')).toBe('');
});

test('programs of packages are in the PATH at launch, and NODE_ENV has a default', async () => {
  await webCommand({ scripts: { start: 'next start' } });
  expect(workspace.layerFile('environment/env.launch/PATH.prepend')).toBe(`${workspace.app}/node_modules/.bin`);
  expect(workspace.layerFile('environment/env.launch/NODE_ENV.default')).toBe('production');
  expect(workspace.layerFile('environment.toml')).toContain('launch = true');
});

test('a package.json that is not JSON fails the build and is named', async () => {
  workspace.write('package.json', '{"name": ');
  const result = await workspace.build('nodejs');
  expect(result.code).toBe(1);
  expect(result.output).toMatch(/^kf\/nodejs: package\.json cannot be read: /);
});
