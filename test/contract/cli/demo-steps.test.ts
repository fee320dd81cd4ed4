// A demo does not affect others, and the commands that it prints last can be pasted into a shell, whatever Node the machine has.

import { execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { demoFolder, nextSteps } from '../../support/demo-steps.ts';

const bundle = bundleForTests();
const cli = new Cli(bundle.program);
afterAll(() => {
  cli.remove();
  bundle.remove();
});

it('the alias of kf works if the Node on the path is too old', async () => {
  const bin = path.join(cli.home, "the machine's bin");
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'node'), '#!/bin/sh\necho "this Node is too old" >&2\nexit 1\n');
  chmodSync(path.join(bin, 'node'), 0o755);
  const kf = path.join(cli.home, 'an installed kf');
  symlinkSync(bundle.program, kf);
  const shown = nextSteps({
    kf,
    env: { KUBECONFIG: '/a/kubeconfig', CF_HOME: '/a home' },
    own: true,
    urls: ['http://hello.apps.localhost:8080'],
  });
  expect(shown).toContain('\n  curl http://hello.apps.localhost:8080\n');
  const pasted = shown.split('\n').filter((line) => /^ +(?:export|alias) /.test(line));
  const script = ['shopt -s expand_aliases', ...pasted, 'kf version', 'echo "$KUBECONFIG, $CF_HOME"'].join('\n');
  const env = { PATH: `${bin}${path.delimiter}${process.env['PATH'] ?? ''}`, HOME: cli.home };
  const said = await new Promise<string>((resolve) => {
    execFile('bash', ['-c', script], { env }, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
  expect(said).toMatch(/^kf version \d+\.\d+\.\d+\n\/a\/kubeconfig, \/a home\n$/);
});

it('a demo that gets a signal twice waits for the running kf, and says how to go on', async () => {
  const kf = `process.on('SIGINT', () => console.log('ending')); process.stdin.once('data', () => process.exit(130)); console.log('ready');`;
  const demo = `
    import { spawn } from 'node:child_process';
    import { endOn } from ${JSON.stringify(path.resolve('test/support/interruption.ts'))};
    const child = spawn(process.execPath, ['-e', ${JSON.stringify(kf)}], { stdio: 'inherit' });
    endOn('SIGINT', 130, () => child, 'Interrupted.');`;
  const started = spawn(process.execPath, ['--input-type=module', '-e', demo], { stdio: 'pipe' });
  let stderr = '';
  started.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  started.stdout.on('data', (data: Buffer) => {
    started.kill('SIGINT');
    if (data.toString().includes('ending')) started.stdin.end('end');
  });
  const code = await new Promise<number | null>((resolve) => started.on('close', resolve));
  expect([code, stderr]).toEqual([130, '\nInterrupted.\n']);
});

it('demo --down of one demo keeps the data of other demos in the same cache', async () => {
  const cache = path.join(cli.home, 'cache');
  const [mine, another, ofContext] = [{ cluster: 'demo-a' }, { cluster: 'demo-b' }, { context: 'arn:aws:eks:eu/my-cluster' }].map((demo) =>
    demoFolder(cache, demo),
  );
  for (const folder of [mine, another, ofContext]) mkdirSync(folder ?? '', { recursive: true });
  const env = { ...process.env, KF_CACHE: cache, KF_DEMO_CLUSTER: 'demo-a' };
  const code = await new Promise<number | null>((resolve) => {
    execFile(process.execPath, ['test/demo.ts', '--down'], { env }).on('exit', resolve);
  });
  expect(code).toBe(0);
  expect([mine, another, ofContext].map((folder) => existsSync(folder ?? ''))).toEqual([false, true, true]);
  expect(readdirSync(path.join(cache, 'demo', 'contexts'))).toEqual(['arn%3Aaws%3Aeks%3Aeu%2Fmy-cluster']);
});
