import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readSetupFile } from '../../../src/lib/ops/install/request.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'kf-setup-'));
const file = path.join(folder, 'setup.yaml');
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['gatewayPort: 65536', "the key 'gatewayPort' is a port, from 1 to 65535, and not 65536."],
  ['gatewayPort: 0', "the key 'gatewayPort' is a port, from 1 to 65535, and not 0."],
  ['gatewayPort: 80.5', "the key 'gatewayPort' is a port, from 1 to 65535, and not 80.5."],
  ["gatewayPort: '80'", `the key 'gatewayPort' is a port, from 1 to 65535, and not "80".`],
  ['tasksKeptPerApp: 0', "the key 'tasksKeptPerApp' is a whole number from 1 and not 0."],
  ['tasksKeptPerApp: many', `the key 'tasksKeptPerApp' is a whole number from 1 and not "many".`],
  ['nodePort: 70000', "the key 'nodePort' is a port, from 1 to 65535, and not 70000."],
])('%s is refused as a setting', async (text, message) => {
  writeFileSync(file, `${text}\n`);
  await expect(readSetupFile(file)).rejects.toThrow(`Incorrect Usage: ${file}: ${message}`);
});

test('ports are taken as they are', async () => {
  writeFileSync(file, 'gatewayPort: 65535\nnodePort: 30000\n');
  await expect(readSetupFile(file)).resolves.toEqual({ gatewayPort: 65535, nodePort: 30000 });
});
