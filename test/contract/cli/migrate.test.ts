// `kf migrate check`: what a script that was written for cf has to change.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';

const bundle = bundleForTests();
let cli: Cli;

// No cluster is asked.
beforeEach(() => void (cli = new Cli(bundle.program, { KUBECONFIG: '/nowhere' })));
afterEach(() => cli.remove());
afterAll(() => bundle.remove());

const file = (name: string, ...lines: string[]): void => writeFileSync(path.join(cli.home, name), `${lines.join('\n')}\n`);

describe('migrate check', () => {
  it('names the calls that fail, with their lines and what to write instead, and ends with 1', async () => {
    file('deploy.sh', '#!/bin/sh', 'cf push shop \\', '  --strategy canary', 'cf bg-deploy shop.mtar', 'cf set-env shop A "b c"');
    const run = await cli.run(['migrate', 'check', 'deploy.sh']);
    expect(run).toMatchObject({ code: 1, stderr: '' });
    expect(run.stdout.split('\n')).toEqual([
      'deploy.sh:2   refused   cf push shop --strategy canary',
      expect.stringMatching(/^ +--strategy canary: instead: \S/),
      'deploy.sh:4   refused   cf bg-deploy shop.mtar',
      expect.stringMatching(/^ +bg-deploy: instead: kf push -f manifest\.yml/),
      'deploy.sh:5   done      cf set-env shop A "b c"',
      '',
      '3 calls: 1 done, 2 refused. 2 calls will fail with kf.',
      '',
    ]);
  });

  it('ends with 0 when all calls work, in several files of several kinds', async () => {
    file('deploy.sh', 'cf delete-service db -f -w');
    file('ci.yml', 'script:', '  - cf apps', '  - echo cf curl');
    const run = await cli.run(['migrate', 'check', 'deploy.sh', 'ci.yml']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/^deploy\.sh:1 +ignored +cf delete-service db -f -w\n +-w: .+\nci\.yml:2 +done +cf apps\n/);
    expect(run.stdout).toContain('\n2 calls: 1 done, 1 ignored. All of them work with kf.\n');
    file('deploy.sh', 'ls');
    expect(await cli.run(['migrate', 'check', 'deploy.sh'])).toMatchObject({ code: 0, stdout: 'No calls of cf found.\n' });
  });

  it('is one document with --json, with the same exit code', async () => {
    file('deploy.sh', 'cf apps --nope', 'cf apps');
    const run = await cli.run(['migrate', 'check', 'deploy.sh', '--json']);
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout)).toEqual({
      status: 1,
      result: {
        calls: [
          {
            file: 'deploy.sh',
            line: 1,
            call: 'cf apps --nope',
            status: 'unknown',
            remarks: [{ about: '--nope', status: 'unknown', text: "'apps' has no flag '--nope'" }],
          },
          { file: 'deploy.sh', line: 2, call: 'cf apps', status: 'done', remarks: [] },
        ],
        totals: { done: 1, unknown: 1 },
        broken: 1,
      },
      warnings: [],
    });
  });

  it.each([
    [['check', 'nothing.sh'], "There is no file 'nothing.sh'.\n"],
    [['check', 'folder'], "'folder' is a folder.\n\nTIP:\n   kf migrate check folder/*\n"],
    [['check', 'large.sh'], "The file 'large.sh' is larger than 1 MB, the most that a script can have.\n"],
    [['check', 'deploy.py'], "'deploy.py' is not a shell script."],
    [['check', 'bad.yml'], 'bad.yml:2: this is not valid YAML: '],
    [['write', 'deploy.sh'], "'write' is no action of 'kf migrate'.\n\nTIP:\n   kf migrate check FILE...\n"],
    [['check'], 'Incorrect Usage: the required argument `FILE` was not provided'],
  ])('of %j fails with one sentence', async (argv, message) => {
    mkdirSync(path.join(cli.home, 'folder'));
    file('large.sh', 'x'.repeat(1024 * 1024));
    file('deploy.py', 'import os');
    file('bad.yml', 'a: b', 'c: d: e');
    const run = await cli.run(['migrate', ...argv]);
    expect(run.code).toBe(1);
    expect(run.stderr.startsWith(message)).toBe(true);
  });

  it('shows its arguments in its usage', async () => {
    expect((await cli.run(['help', 'migrate'])).stdout).toContain('   kf migrate ACTION FILE...\n');
  });
});
