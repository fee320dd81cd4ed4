// Attacker: a build step. It claims its end while it runs, changes the inputs of the export, and leaves a link to the container's credential.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';

const folder = path.resolve('test/fixtures/apps/build-handover');
const space = ringEnv('KF_TEST_SPACE_GUID');
const names = { liar: 'handover-liar', link: 'handover-link' };
let kf: Kf;
let work: string;

beforeAll(async () => {
  [kf, work] = [await Kf.create(), await mkdtemp(path.join(tmpdir(), 'kf-handover-'))];
});
afterAll(async () => {
  for (const name of Object.values(names)) await kf.run(['delete', name, '-r', '-f']);
  await Promise.all([kf.remove(), rm(work, { recursive: true, force: true })]);
});

interface Pods {
  items: { metadata: { name: string; annotations?: Record<string, string> } }[];
}

/** The only pod that built the app. */
async function buildPod(app: string): Promise<Pods['items'][number]> {
  const { items } = await kubectlJson<{ items: { metadata: { name: string }; spec: { displayName: string } }[] }>(
    'get',
    'cfapps',
    '-n',
    space,
  );
  const guid = items.find(({ spec }) => spec.displayName === app)?.metadata.name ?? '';
  const selector = `korifi.cloudfoundry.org/app-guid=${guid},korifi.cloudfoundry.org/build-guid`;
  const pods = await kubectlJson<Pods>('get', 'pods', '-n', space, '-l', selector);
  expect(pods.items.length).toBe(1);
  return pods.items[0] as Pods['items'][number];
}

/** The time at which a container printed a line, by the node's clock, in nanoseconds; it can be sorted as text. */
async function printedAt(pod: string, container: string, line: string): Promise<string> {
  const log = await kubectl('logs', pod, '-n', space, '-c', container, '--timestamps');
  const found = log.split('\n').find((text) => text.endsWith(` ${line}`));
  expect(found, `${line} in the log of ${container}:\n${log}`).toBeDefined();
  return found?.split(' ')[0] ?? '';
}

test('a build step cannot fake its end: the export begins after its real end, with the images of the analysis', async () => {
  const { stdout } = await kf.ok('push', names.liar, '-p', folder, '-m', '128M');
  const said = [...stdout.matchAll(/ATTACK (DONE|REFUSED) (\S+)/g)].map(([, how, what]) => `${how} ${what}`);
  expect(said).toEqual([
    'REFUSED hand/built',
    'REFUSED hand/build-ended',
    'REFUSED hand/restored',
    'REFUSED hand/failed',
    'REFUSED release/build-ended',
    'DONE analyzed',
  ]);
  const { metadata } = await buildPod(names.liar);
  const [ended, exported] = [
    await printedAt(metadata.name, 'build', 'ATTACK ENDS'),
    await printedAt(metadata.name, 'registry', 'Exporting the droplet...'),
  ];
  expect(exported > ended, `${exported} after ${ended}`).toBe(true);
  expect((await get(`${names.liar}.apps.localhost`, '/')).body).toBe('built\n');
});

test.each(['/layers/project-metadata.toml', '/layers/kf_nodejs/build.toml', '/layers/kf_nodejs/stolen'])(
  'a link at %s is refused before the exporter reads it',
  async (link) => {
    const manifest = path.join(work, 'manifest.yml');
    const app = { name: names.link, path: folder, memory: '128M', 'no-route': true, env: { ATTACK_LINK: link } };
    await writeFile(manifest, JSON.stringify({ applications: [app] }));
    const ran = await kf.run(['push', '-f', manifest]);
    expect(ran.stdout).toContain('ATTACK DONE link');
    expect(ran.code, ran.stdout + ran.stderr).toBe(1);
    expect(ran.stderr).toContain(`left a link where only files and folders may be: ${link}`);
    expect(ran.stdout + ran.stderr).not.toMatch(/Exporting the droplet|Basic /);
  },
);
