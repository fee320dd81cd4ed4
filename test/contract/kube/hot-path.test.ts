import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Runs a program that records every module that it loads, and loads the client as `kf apps` does. */
function modulesLoadedBy(program: string): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'kf-hot-path-'));
  try {
    const config =
      'apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- context:\n    cluster: k\n    user: u\n  name: c\nclusters:\n- cluster:\n    server: https://127.0.0.1:1\n  name: k\nusers:\n- name: u\n  user:\n    token: abc\n';
    writeFileSync(join(dir, 'config'), config);
    const hooks =
      "import { registerHooks } from 'node:module';\nregisterHooks({ load(url, context, next) { process.stdout.write(url + '\\n'); return next(url, context); } });\n";
    writeFileSync(join(dir, 'program.mjs'), `${hooks}${program.replaceAll('$DIR', dir)}`);
    const result = spawnSync(process.execPath, [join(dir, 'program.mjs')], { encoding: 'utf8' });
    expect(result.stderr).toBe('');
    return result.stdout.trim().split('\n');
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test('connecting with a kubeconfig as kubectl writes it loads no client-node, undici, yaml or proxy library', () => {
  const client = fileURLToPath(new URL('../../../src/lib/kube/client.ts', import.meta.url));
  const loaded = modulesLoadedBy(
    `const { connect } = await import(${JSON.stringify(client)});\n(await connect({ kubeconfig: '$DIR/config', env: {} })).close();\n`,
  );
  expect(loaded.some((url) => url.endsWith('/kube/transport.ts'))).toBe(true);
  expect(loaded.filter((url) => /node_modules|exec-credential|auth-provider|node:child_process|node:zlib/.test(url))).toEqual([]);
});
