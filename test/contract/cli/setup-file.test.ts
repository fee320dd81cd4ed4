// The settings file is checked before anything else, because its errors do not depend on the cluster.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';

const bundle = bundleForTests();
const folder = mkdtempSync(path.join(tmpdir(), 'kf-setup-file-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
  bundle.remove();
});

test('errors in the setup file are reported with their positions, without a request', async () => {
  const server = await ScriptedApiServer.start();
  const cli = new Cli(bundle.program, { KUBECONFIG: server.kubeconfig() });
  const file = path.join(folder, 'setup.yaml');
  writeFileSync(file, 'domain: apps.example.com\ngatewayport: 80\nregistrySize: fifty\n');
  const run = await cli.run(['setup', '-f', file]);
  cli.remove();
  await server.stop();
  expect(run.code).toBe(1);
  expect(run.stderr).toContain(
    `Incorrect Usage: ${file}:2:1: unknown key 'gatewayport'. Did you mean 'gatewayPort'?\n` +
      `${file}:3:15: the key 'registrySize' is a quantity such as 10Gi or 500m and not "fifty".\n`,
  );
  expect(run.stderr).toMatch(/Known keys: domain, registry, .*, space$/m);
  expect(server.calls.map(({ method, path: asked }) => `${method} ${asked}`)).toEqual([]);
});
