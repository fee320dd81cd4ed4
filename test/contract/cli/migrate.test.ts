// `kf migrate check`: what a script that was written for cf has to change.

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { scriptsFolder } from '../../support/pipelines.ts';

const bundle = bundleForTests();
let cli: Cli;

// No cluster is asked.
beforeEach(() => void (cli = new Cli(bundle.program, { KUBECONFIG: '/nowhere' })));
afterEach(() => cli.remove());
afterAll(() => bundle.remove());

const file = (name: string, ...lines: string[]): void => writeFileSync(path.join(cli.home, name), `${lines.join('\n')}\n`);

describe('migrate check', () => {
  it('names the calls that fail, with their lines and what to write instead, and ends with 1', async () => {
    file('deploy.sh', '#!/bin/sh', 'cf push shop \\', '  --task', 'cf bg-deploy shop.mtar', 'cf set-env shop A "b c"');
    const run = await cli.run(['migrate', 'check', 'deploy.sh']);
    expect(run).toMatchObject({ code: 1, stderr: '' });
    expect(run.stdout.split('\n')).toEqual([
      'deploy.sh:2   refused   cf push shop --task',
      expect.stringMatching(/^ +--task: instead: \S/),
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
    file('deploy.sh', 'cf apps', 'cf run-task $APP "rake db:migrate"');
    const perhaps = await cli.run(['migrate', 'check', 'deploy.sh']);
    expect(perhaps).toMatchObject({ code: 0, stdout: expect.stringMatching(/: 1 done, 1 unclear\. 1 call may fail\.\n$/) as string });
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
    [['check', 'nothing.sh'], "There is no file 'nothing.sh'.\n\nTIP:\n   kf help migrate\n"],
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

  // The others run: test/cluster/scripts.test.ts.
  const broken: [string, string[]][] = [
    [
      'autoscaler.sh',
      [
        '4 refused attach-autoscaling-policy: instead: kf autoscale APP --policy FILE',
        '5 refused autoscaling-metrics: instead: kf autoscale APP --json',
      ],
    ],
    [
      'blue-green-plugin.sh',
      [
        '2 refused add-plugin-repo: instead: kf install-plugin NPM_PACKAGE',
        '3 refused -r: instead: kf install-plugin NPM_PACKAGE',
        '4 refused blue-green-deploy: instead: kf push APP (an update has no downtime)',
      ],
    ],
    ['concourse-task.yml', ['8 refused --sso-passcode: instead: kubectl config set-credentials USER --exec-command=COMMAND']],
    [
      'mta-deploy.sh',
      [
        '3 refused -r: instead: kf install-plugin NPM_PACKAGE',
        '5 refused deploy: instead: kf push -f manifest.yml, with an app for each module',
        '6 refused mtas: instead: kf apps --json and kf services --json',
      ],
    ],
    [
      'old-api.sh',
      [
        '4 refused /v2/apps?q=name:shop: instead: ',
        '5 refused /v2/apps/$guid/summary: instead: ',
        '6 refused /v2/apps/$guid: instead: ',
        '7 refused rake db:migrate: instead: kf run-task APP_NAME --command COMMAND',
      ],
    ],
    [
      'service-key-dump.sh',
      [
        '4 refused create-service: instead: kf create-user-provided-service NAME -p CREDENTIALS',
        '6 refused create-service-key: instead: kf env of an app that is bound',
        '7 refused service-key: instead: kf env of an app that is bound',
        '9 refused delete-service-key: instead: kf unbind-service APP SERVICE_INSTANCE',
      ],
    ],
  ];

  interface Checked {
    result: { calls: { line: number; status: string; remarks: { status: string; about: string; text: string }[] }[]; broken: number };
  }
  /** The remarks of calls that fail, each as `LINE STATUS ABOUT: TEXT`. */
  async function failing(...files: string[]): Promise<string[]> {
    const { stdout } = await cli.run(['migrate', 'check', ...files.map((name) => path.join(scriptsFolder, name)), '--json']);
    return (JSON.parse(stdout) as Checked).result.calls.flatMap(({ line, remarks }) =>
      remarks
        .filter(({ status }) => status === 'refused' || status === 'unknown')
        .map(({ status, about, text }) => `${line} ${status} ${about}: ${status === 'refused' ? 'instead: ' : ''}${text}`),
    );
  }

  it.each(broken)('of %s, which cannot run, names the lines and what to write', async (name, expected) => {
    const found = await failing(name);
    expect(found).toHaveLength(expected.length);
    for (const [at, text] of expected.entries()) expect(found[at]?.slice(0, text.length)).toBe(text);
  });

  it('finds nothing that fails in the scripts that run on a cluster', async () => {
    const names = readdirSync(scriptsFolder).filter((name) => !broken.some(([other]) => other === name));
    expect(names.length + broken.length).toBeGreaterThanOrEqual(40);
    expect(await failing(...names)).toEqual([]);
  });

  it('shows its arguments in its usage', async () => {
    expect((await cli.run(['help', 'migrate'])).stdout).toContain('   kf migrate ACTION FILE...\n');
  });
});
