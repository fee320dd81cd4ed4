// Which versions of Node bin/run.js accepts, and its message for others: under this Node with a faked version.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { transform } from 'esbuild';
import { afterAll, describe, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';

const bundle = bundleForTests();
const cli = new Cli(bundle.program);
afterAll(() => {
  cli.remove();
  bundle.remove();
});

/** Runs kf under a Node whose `process.versions` has that version. */
function under(version: string, ...args: string[]): ReturnType<Cli['run']> {
  const preload = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  return cli.run(args, { env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` } });
}

describe('a Node that is too old', () => {
  it.each(['12.22.12', '18.20.8', '20.20.2', '22.9.0', '22.22.1', '23.11.1', '24.14.9', '25.9.0'])(
    'as %s gets one sentence that names it, and exit code 1',
    async (version) => {
      const { code, stdout, stderr } = await under(version, 'apps');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        `kf needs Node.js 22.22.2 or newer of line 22, 24.15 or newer of line 24, or 26 and up, and this is ${version}.\n`,
      );
    },
  );

  it('can parse the file that prints this: plain syntax, and nothing imported before', async () => {
    const source = readFileSync('bin/run.js', 'utf8');
    const code = async (target: string): Promise<string> =>
      (await transform(source, { target, supported: { 'dynamic-import': true } })).code;
    expect(await code('es5')).toBe(await code('esnext'));
    expect(source).not.toMatch(/^\s*(import|export) /m);
  });
});

it.each(['22.22.2', '22.23.0', '24.15.0', '24.21.0', '26.0.0', '30.1.0'])('Node %s starts kf', async (version) => {
  const { code, stdout, stderr } = await under(version, '--version');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^kf version /);
});

it("the range of package.json's engines is the tested one", () => {
  const { engines } = JSON.parse(readFileSync(path.resolve('package.json'), 'utf8')) as { engines: { node: string } };
  expect(engines.node).toBe('^22.22.2 || ^24.15.0 || >=26');
});
