// Scripts as pipelines have them for cf, unchanged, with kf as their cf. Those that need one app run one after the other in a lane; lanes run
// side by side.

import { cp, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';
import { Pipeline, scriptsFolder, type ScriptRun } from '../support/pipelines.ts';
import { image, lanes, org, space, type Lane, type Step } from '../support/script-lanes.ts';

interface Process {
  spec: { processType: string; command: string; memoryMB: number };
  status: { actualInstances: number };
}

/** An app repository that was written for Cloud Foundry. */
const repository: Lane = {
  app: 'shop',
  begin: 'target',
  steps: [
    {
      script: 'push-repository.sh',
      prints: [
        'name: shop',
        'routes: shop.apps.localhost, www-shop.apps.localhost/shop',
        'instances: 2/2',
        'name: shop-admin',
        'instances: 1/1',
        JSON.stringify({
          title: 'The shop',
          name: 'shop',
          uris: ['shop.apps.localhost', 'www-shop.apps.localhost/shop'],
          database: 'postgres://db.example.com/shop',
          mail: 'mail.example.com',
          environment: 'production',
          currency: 'EUR',
          retries: '3',
          hasLocalSettings: false,
        }),
        '{"apple":2}',
      ],
      then: async () => {
        const { items } = await kubectlJson<{ items: Process[] }>('get', 'cfprocesses', '-n', ringEnv('KF_TEST_SPACE_GUID'));
        const worker = items.find(({ spec }) => spec.processType === 'worker' && spec.command === 'node worker.js');
        expect([worker?.spec.memoryMB, worker?.status.actualInstances]).toEqual([48, 1]);
      },
    },
  ],
};

const all: readonly Lane[] = [repository, ...lanes];

interface Outcome {
  ran: ScriptRun;
  /** What was not true on the cluster right after it. */
  failed: Error | undefined;
}

const nameOf = ({ script, as }: Step): string => (as === undefined ? script : `${script}, ${as}`);
const outcomes = new Map<Step, Promise<Outcome>>();
const pipelines: Pipeline[] = [];

/** The first user of a kubeconfig. */
async function userOf(file: string): Promise<string> {
  const config = parse(await readFile(file, 'utf8')) as { users: { name: string }[] };
  return config.users[0]?.name ?? '';
}

/** The variables that the pipeline of a lane has from its settings. */
async function variablesOf({ app, as }: Lane): Promise<Record<string, string>> {
  const kubeconfig = ringEnv(as === 'admin' ? 'KF_TEST_KUBECONFIG' : 'KF_TEST_DEVELOPER');
  return {
    KUBECONFIG: kubeconfig,
    CF_API: `https://${ringEnv('KF_CLUSTER_ADDRESS')}:6443`,
    CF_USERNAME: await userOf(kubeconfig),
    CF_PASSWORD: 'not used',
    CF_ORG: ringEnv('KF_TEST_ORG'),
    CF_SPACE: space,
    APP: app,
    DOMAIN: 'apps.localhost',
    IMAGE: image('sample:1'),
    IMAGE_NEXT: image('sample:2'),
    IMAGE_BROKEN: image('crash:1'),
    NEW_ORG: org,
    DEVELOPER: `system:serviceaccount:kf-test-users:${await userOf(ringEnv('KF_TEST_DEVELOPER'))}`,
  };
}

async function startPipeline(lane: Lane): Promise<Pipeline> {
  const pipeline = await Pipeline.create(await variablesOf(lane));
  pipelines.push(pipeline);
  for (const [name, app] of [
    ['source', 'procfile-worker'],
    ['site', 'static-site'],
    ['shop', 'shop'],
  ] as const)
    await cp(path.resolve('test/fixtures/apps', app), path.join(pipeline.folder, name), { recursive: true });
  if (lane.begin !== 'nothing') await pipeline.prepare('cf target -o "$CF_ORG" -s "$CF_SPACE"');
  if (lane.begin === 'push') await pipeline.prepare('cf push "$APP" -o "$IMAGE" -m 64M');
  return pipeline;
}

async function runStep(pipeline: Pipeline, step: Step): Promise<Outcome> {
  for (const [name, text] of Object.entries(step.files ?? {})) await pipeline.write(name, text);
  if (step.before !== undefined) await pipeline.prepare(step.before);
  const ran = await pipeline.run(step.script, step);
  const failed = await step.then?.().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
  return { ran, failed };
}

/** Starts every lane; each step waits for the one before it, whatever became of that. */
beforeAll(() => {
  for (const lane of all) {
    const started = startPipeline(lane);
    let before: Promise<unknown> = started;
    for (const step of lane.steps) {
      const outcome = before.then(async () => runStep(await started, step));
      outcomes.set(step, outcome);
      before = outcome.catch(() => undefined);
    }
  }
});

afterAll(async () => {
  await Promise.allSettled(outcomes.values());
  const [developer, admin] = await Promise.all([Kf.create(), Kf.create('admin')]);
  const apps = await developer.json<{ name: string }[]>('apps');
  const made = apps.map(({ name }) => name).filter((name) => /^(bg|ops|cfg|lane|colours|rev|shop)/.test(name));
  await Promise.all(made.map((app) => developer.run(['delete', app, '-r', '-f'])));
  await Promise.all(['cfg-db', 'cfg-keys-new', 'shop-db', 'shop-mail'].map((service) => developer.run(['delete-service', service, '-f'])));
  await admin.run(['delete-org', org, '-f']);
  await Promise.all([developer.remove(), admin.remove(), ...pipelines.map((pipeline) => pipeline.remove())]);
});

describe.each(all.map((lane) => ({ name: lane.app, steps: lane.steps })))('scripts of $name', ({ steps }) => {
  test.each(steps.map((step) => ({ name: nameOf(step), step })))('$name', async ({ step }) => {
    const outcome = outcomes.get(step);
    if (outcome === undefined) throw new Error('it was not run');
    const { ran, failed } = await outcome;
    const lines = ran.stdout.split('\n');
    const missing = (step.prints ?? []).filter((one) => (typeof one === 'string' ? !lines.includes(one) : !one.test(ran.stdout)));
    expect({ code: ran.code, missing }, `${ran.stdout}\n${ran.stderr}`).toEqual({ code: step.code ?? 0, missing: [] });
    if (failed !== undefined) throw failed;
  });
});

test('every script is run here, or shown by kf migrate check as one that cannot run', async () => {
  const run = all.flatMap(({ steps }) => steps.map(({ script }) => script));
  const checked = await readFile('test/contract/cli/migrate.test.ts', 'utf8');
  const others = (await readdir(scriptsFolder)).filter((name) => !run.includes(name));
  expect(others.filter((name) => !checked.includes(`'${name}'`))).toEqual([]);
});
