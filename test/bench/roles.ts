// The demo as a user with only SpaceDeveloper, and every read as a user with only SpaceAuditor.

import { get } from '../support/http.ts';
import type { Scene } from './scene.ts';
import type { Row } from './table.ts';

const app = 'bench-roles';
const host = `${app}.apps.localhost`;
const uri = 'postgres://db.example.com/hello';

/** Commands, and after some of them a check of the result. */
const demo: (string[] | (() => Promise<void>))[] = [
  ['push', app, '-p', `${process.cwd()}/test/fixtures/apps/node-hello`, '-m', '64M'],
  answers,
  ['logs', app, '--recent'],
  ['scale', app, '-i', '3'],
  ['create-user-provided-service', 'bench-db', '-p', JSON.stringify({ uri })],
  ['bind-service', app, 'bench-db'],
  ['restart', app],
  seesService,
  ['set-env', app, 'COLOUR', 'blue'],
  ['env', app],
  ['apps'],
];

async function answers(): Promise<void> {
  const { status, body } = await get(host);
  if (status !== 200 || !body.startsWith('hello from instance')) throw new Error(`${host} answered ${status}: ${body}`);
}

/** All three instances, however the gateway distributes the requests: every answer shows the service in its environment. */
async function seesService(): Promise<void> {
  const seen = new Set<string>();
  for (let asked = 0; seen.size < 3; asked++) {
    const { status, body } = await get(host, '/env');
    if (status !== 200 || !body.includes(uri)) throw new Error(`${host}/env answered ${status} without the bound service.`);
    seen.add((JSON.parse(body) as Record<string, string>)['CF_INSTANCE_INDEX'] ?? '');
    if (asked === 200) throw new Error(`Of three instances of ${host} only ${seen.size} answered 200 requests.`);
  }
}

const reads = [['apps'], ['app', app], ['routes'], ['domains'], ['services'], ['orgs'], ['spaces'], ['target'], ['logs', app, '--recent']];

const cleanUp = [
  ['unbind-service', app, 'bench-db'],
  ['delete-service', 'bench-db', '-f'],
  ['delete', app, '-f', '-r'],
];

/** Commands that must be refused to an auditor, with the missing right. */
const refused = [
  ['env', app],
  ['push', 'bench-refused', '-o', 'registry.example.com/none:1'],
  ['scale', app, '-i', '1'],
];

const namedRight = /may not \w+ "[^"]+"/;

export async function benchRoles({ developer, auditor }: Scene): Promise<Row[]> {
  for (const step of demo) await (typeof step === 'function' ? step() : developer.ok(...step));
  for (const args of reads) await auditor.ok(...args);
  const refusals: string[] = [];
  for (const args of refused) {
    const { code, stdout, stderr } = await auditor.run(args);
    if (code === 0) throw new Error(`An auditor may: kf ${args.join(' ')}`);
    const right = namedRight.exec(stdout + stderr)?.[0];
    if (right === undefined) throw new Error(`The refusal of kf ${args.join(' ')} names no right: ${stdout}${stderr}`);
    refusals.push(`\`${args[0] ?? ''}\`: ${right}`);
  }
  for (const args of cleanUp) await developer.ok(...args);
  return [
    {
      what: 'the demo as SpaceDeveloper',
      reach: 'works',
      measured: `works (${demo.filter((step) => typeof step !== 'function').length} commands)`,
      beside: `${host} answers; all instances see the bound service`,
    },
    {
      what: 'every read as SpaceAuditor',
      reach: 'works; a refusal names the right',
      measured: `works (${reads.length} commands)`,
      beside: refusals.join(' · '),
    },
  ];
}
