// The scripts of test/fixtures/scripts that run on a cluster: what each one needs, what it prints, and what is then true.

import { expect } from 'vitest';
import { get } from './http.ts';
import { kubectlJson, ringEnv } from './kf.ts';
import { until } from './until.ts';

export interface Step {
  script: string;
  /** The case, when a script runs more than once. */
  as?: string;
  job?: string;
  args?: string[];
  env?: Record<string, string>;
  /** Written into its folder before. */
  files?: Record<string, string>;
  /** Commands of cf that were run before. */
  before?: string;
  code?: number;
  /** The lines of stdout, without the output of commands of cf that the script does not read. */
  prints?: (string | RegExp)[];
  /** What is then true on the cluster. */
  then?: () => Promise<void>;
}

export interface Lane {
  app: string;
  /** Where the scripts begin: `push` an app of that name, `target` only, or nothing. */
  begin: 'push' | 'target' | 'nothing';
  as?: 'admin';
  steps: Step[];
}

const registry = ringEnv('KF_CLUSTER_NODE_REGISTRY');
export const image = (name: string): string => `${registry}/kf/${name}`;
const host = (name: string): string => `${name}.apps.localhost`;
export const org = 'pipeline-org';
export const space = ringEnv('KF_TEST_SPACE');

const versionAt = async (url: string): Promise<unknown> =>
  (JSON.parse((await get(url, '/instance')).body) as { version?: unknown }).version;

/** No request reaches an app after its deletion, so the first one shows the version that is left. */
async function serves(url: string, version: string): Promise<void> {
  expect(await versionAt(url)).toBe(version);
}

interface App {
  metadata: { name: string };
  spec: { displayName: string };
}
const apps = async (): Promise<App[]> => (await kubectlJson<{ items: App[] }>('get', 'cfapps', '-n', ringEnv('KF_TEST_SPACE_GUID'))).items;

const appNames = async (begin: string): Promise<string[]> =>
  (await apps())
    .map(({ spec }) => spec.displayName)
    .filter((name) => name.startsWith(begin))
    .toSorted();

/** An instance that a scale takes away answers until the gateway knows; what comes next is about the one that is left. */
async function hasOnePod(app: string): Promise<void> {
  const guid = (await apps()).find(({ spec }) => spec.displayName === app)?.metadata.name ?? '';
  const selector = `korifi.cloudfoundry.org/app-guid=${guid},korifi.cloudfoundry.org/process-type=web`;
  await until(`the one pod of ${app}`, async () => {
    const { items } = await kubectlJson<{ items: object[] }>('get', 'pods', '-n', ringEnv('KF_TEST_SPACE_GUID'), '-l', selector);
    return items.length === 1;
  });
}

const manifest = (...apps: object[]): string =>
  JSON.stringify({ applications: apps.map((app) => ({ memory: '64M', docker: { image: '((image))' }, ...app })) });

const blueGreen: Lane = {
  app: 'bg',
  begin: 'nothing',
  steps: [
    { script: 'blue-green-rename.sh', as: 'the first time' },
    {
      script: 'blue-green-rename.sh',
      as: 'the second time',
      then: async () => {
        await serves(host('bg'), '2');
        expect((await get(host('bg-green'))).status).toBe(404);
        expect(await appNames('bg')).toEqual(['bg']);
      },
    },
    {
      script: 'blue-green-venerable.sh',
      args: [image('sample:1')],
      then: async () => {
        await serves(host('bg'), '1');
        expect(await appNames('bg')).toEqual(['bg']);
      },
    },
    {
      script: 'blue-green-venerable.sh',
      as: 'with a version that does not start',
      args: [image('crash:1')],
      code: 1,
      prints: ['push failed, taking back bg-venerable', /no database named "orders"/],
      then: async () => {
        await serves(host('bg'), '1');
        expect(await appNames('bg')).toEqual(['bg']);
      },
    },
    {
      script: 'blue-green-manifest.sh',
      args: ['bg'],
      prints: [/^HTTP\/1\.1 200 OK/m, 'DONE'],
      then: async () => {
        expect((await get(host('bg'))).status).toBe(200);
        expect(await appNames('bg')).toEqual(['bg']);
      },
    },
    {
      script: 'zero-downtime.sh',
      prints: [/^ +\d+ 200$/m],
      then: () => serves(host('bg'), '2'),
    },
  ],
};

const operations: Lane = {
  app: 'ops',
  begin: 'target',
  steps: [
    { script: 'migrate-before-start.sh', prints: [/\[APP\/TASK\/db-migrate\/0\] OUT migrated postgres:\/\/db\.example\.com\/shop$/m] },
    { script: 'migrate-with-curl.sh', prints: ['Migration result is SUCCEEDED'] },
    { script: 'migrate-wait.sh', prints: ['no such table'] },
    { script: 'smoke-check.sh', prints: ['smoke check of ops.apps.localhost: ok'] },
    { script: 'wait-for-instances.sh', prints: ['3/3', '3'], then: () => hasOnePod('ops') },
    { script: 'log-grep.sh', prints: ['[APP/PROC/WEB/0]', 'errors found'] },
    {
      script: 'scale-by-night.sh',
      prints: ['already 2', 'instances: 2/2', 'memory usage: 64M', 'memory usage: 96M'],
    },
    { script: 'ssh-look.sh', env: { PORT: '18917' }, prints: ['ops', 'code 7', 'ok'] },
    {
      script: 'health-check.sh',
      prints: ['http /health 5', '{"type":"http","data":{"timeout":60,"invocation_timeout":5,"interval":null,"endpoint":"/health"}}'],
    },
    { script: 'api-restart.sh', prints: ['STOPPED', 'STARTED', '2', 'code 22'] },
    { script: 'who-did-what.sh', prints: ['audit.app.create', 'audit.app.package.create', 'audit.app.process.ready', 'audit.app.stop'] },
  ],
};

const settings: Lane = {
  app: 'cfg',
  begin: 'push',
  steps: [
    {
      script: 'label-commit.sh',
      env: { COMMIT: 'a1b2c3d' },
      prints: ['a1b2c3d', 'cfg', 'cfg started', '{"commit":"a1b2c3d"}'],
    },
    { script: 'create-or-update-service.sh', as: 'the first time', env: { DB_PASSWORD: 'one' }, prints: ['one', 'postgres+relational'] },
    { script: 'create-or-update-service.sh', as: 'the second time', env: { DB_PASSWORD: 'two' }, prints: ['two'] },
    { script: 'rotate-secret.sh', prints: ['new two'] },
    {
      script: 'env-file-restage.sh',
      before: 'cf set-env cfg OLD_FLAG yes; printf "# comment\\nCOLOUR=green\\n\\nGREETING=hello world=x\\n" > settings.env',
      prints: ['User-Provided:', 'COLOUR: green', 'GREETING: hello world=x'],
      then: async () => {
        const env = JSON.parse((await get(host('cfg'), '/env')).body) as Record<string, string>;
        expect(env).toMatchObject({ COLOUR: 'green', GREETING: 'hello world=x' });
        expect(env['OLD_FLAG']).toBeUndefined();
      },
    },
    { script: 'export-env.sh', before: 'cf create-app cfg-copy', prints: ['COLOUR: green', 'GREETING: hello world=x'] },
    {
      script: 'deploy-services.sh',
      prints: ['status: create succeeded', 'succeeded', 'user-provided'],
    },
    {
      script: 'guard-target.sh',
      prints: ['API endpoint', 'API version', 'user', space, "Space 'no-such-space' not found."],
    },
    { script: 'memory-report.sh', before: 'cf target -o "$CF_ORG" -s "$CF_SPACE"', prints: ['2 processes, 320 MB'] },
    {
      script: 'list-all-apps.sh',
      env: { NAMES: 'cfg,cfg-copy,cfg-third' },
      before: 'cf create-app cfg-third',
      prints: [`"cfg","STARTED","${space}"`, `"cfg-copy","STOPPED","${space}"`, `"cfg-third","STOPPED","${space}"`],
    },
  ],
};

const branch = { CI_COMMIT_REF_SLUG: 'login-page', CI_COMMIT_SHORT_SHA: 'a1b2c3d', HEAD_REF: 'Feature/Login_Page' };
const reviews: Lane = {
  app: 'rev',
  begin: 'nothing',
  steps: [
    {
      script: 'review-app.gitlab-ci.yml',
      as: 'review',
      job: 'review',
      env: branch,
      prints: ['DYNAMIC_ENVIRONMENT_URL=http://review-login-page.apps.localhost'],
      then: async () => {
        const env = JSON.parse((await get(host('review-login-page'), '/env')).body) as Record<string, string>;
        expect(env).toMatchObject({ GIT_COMMIT: 'a1b2c3d', DATABASE_URL: 'postgres://review' });
      },
    },
    {
      script: 'review-app.gitlab-ci.yml',
      as: 'stop_review',
      job: 'stop_review',
      env: branch,
      then: async () => expect(await appNames('review-login')).toEqual([]),
    },
    {
      script: 'review-app.github.yml',
      as: 'deploy',
      job: 'deploy',
      env: branch,
      prints: [/^url=http:\/\/review-feature-login-page-\S+$/m, 'ok'],
    },
    {
      script: 'review-app.github.yml',
      as: 'destroy',
      job: 'destroy',
      env: branch,
      then: async () => expect(await appNames('review-feature')).toEqual([]),
    },
    {
      script: 'delete-old-review-apps.sh',
      before: 'for one in a b c; do cf create-app rev-branch-$one; done',
      prints: ['deleting rev-branch-b', '2'],
      then: async () => expect(await appNames('rev-')).toEqual(['rev-branch-a', 'rev-branch-c']),
    },
    {
      script: 'failed-push.sh',
      code: 3,
      prints: ['push failed', 'no database named "orders"', 'started'],
      then: async () => expect(await appNames('rev')).not.toContain('rev'),
    },
    {
      script: 'several-apps.sh',
      files: { 'manifest.yml': manifest(...['api', 'ui'].map((name) => ({ name: `((prefix))-${name}` }))) },
      prints: ['api started web:2/2', 'ui started web:1/1'],
      then: () => serves(host('rev-api'), '1'),
    },
    {
      script: 'Jenkinsfile.deploy',
      files: { 'manifest.yml': manifest({ name: '((name))', env: { STAGE: '((stage))' } }), 'vars/prod.yml': 'stage: prod\n' },
      prints: [/^requested state: +started$/m],
      env: { APP: 'rev-jenkins' },
      then: async () => expect((await get(host('rev-jenkins'))).status).toBe(200),
    },
  ],
};

const routes: Lane = {
  app: 'lane',
  begin: 'push',
  steps: [
    { script: 'maintenance-page.sh', args: ['on'], prints: ['down: 2', 'up: 1'] },
    {
      script: 'path-routes.sh',
      prints: ["Route 'lane.apps.localhost/v2' does exist.", /^x-sample-version: 2/im],
    },
    { script: 'blue-green-colours.sh', as: 'the first time', env: { APP: 'colours' }, prints: ['live: none, next: colours-blue'] },
    {
      script: 'blue-green-colours.sh',
      as: 'the second time',
      env: { APP: 'colours' },
      prints: ['live: colours-blue, next: colours-green'],
      then: async () => expect((await get(host('colours'))).status).toBe(200),
    },
    {
      script: 'static-site.sh',
      env: { APP: 'lane-site' },
      prints: ['name: lane-site', 'requested state: started', /<h1>/],
    },
    {
      script: 'worker.sh',
      env: { APP: 'lane-worker' },
      prints: ['web 1/1', 'worker 1/1', 'APP/PROC/WORKER/0] OUT worker started'],
    },
  ],
};

const orgs: Lane = {
  app: 'org',
  begin: 'target',
  as: 'admin',
  steps: [
    { script: 'bootstrap-org.sh', as: 'the first time', prints: ['dev', 'prod', '1'] },
    { script: 'bootstrap-org.sh', as: 'the second time', prints: ['dev', 'prod', '1'] },
    {
      script: 'restart-all.sh',
      env: { ONE_SPACE: 'prod', CF_ORG: org },
      before: `cf target -o ${org} -s prod && cf push one -o "$IMAGE" -m 64M --no-route && cf create-app two`,
      prints: ['restarting one', 'one started web:1/1', 'two stopped web:0/1'],
    },
    { script: 'destroy-org.sh', prints: ['gone'] },
  ],
};

export const lanes: readonly Lane[] = [blueGreen, operations, settings, reviews, routes, orgs];
