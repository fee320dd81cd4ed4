// What the demo prints last can be pasted into a shell, whatever Node the machine has itself.

import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { nextSteps } from '../../support/demo-steps.ts';

const bundle = bundleForTests();
const cli = new Cli(bundle.program);
afterAll(() => {
  cli.remove();
  bundle.remove();
});

it('the alias of kf runs where the Node on the path is too old', async () => {
  const bin = path.join(cli.home, "the machine's bin");
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'node'), '#!/bin/sh\necho "this Node is too old" >&2\nexit 1\n');
  chmodSync(path.join(bin, 'node'), 0o755);
  const kf = path.join(cli.home, 'an installed kf');
  symlinkSync(bundle.program, kf);
  const shown = nextSteps({ kf, env: { KUBECONFIG: '/a/kubeconfig', CF_HOME: '/a home' }, own: true });
  const pasted = shown.split('\n').filter((line) => /^ +(?:export|alias) /.test(line));
  const script = ['shopt -s expand_aliases', ...pasted, 'kf version', 'echo "$KUBECONFIG, $CF_HOME"'].join('\n');
  const env = { PATH: `${bin}${path.delimiter}${process.env['PATH'] ?? ''}`, HOME: cli.home };
  const said = await new Promise<string>((resolve) => {
    execFile('bash', ['-c', script], { env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
  expect(said).toMatch(/^kf version \d+\.\d+\.\d+\n\/a\/kubeconfig, \/a home\n$/);
});
