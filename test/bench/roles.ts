// The demo as somebody who holds only SpaceDeveloper, every read as somebody who holds only SpaceAuditor.

import type { Scene } from './scene.ts';
import type { Row } from './table.ts';

const app = 'bench-roles';

const demo = [
  ['push', app, '-p', `${process.cwd()}/test/fixtures/apps/node-hello`, '-m', '64M'],
  ['logs', app, '--recent'],
  ['scale', app, '-i', '3'],
  ['create-user-provided-service', 'bench-db', '-p', '{"uri":"postgres://db.example.com/hello"}'],
  ['bind-service', app, 'bench-db'],
  ['restart', app],
  ['set-env', app, 'COLOUR', 'blue'],
  ['env', app],
  ['apps'],
];

const reads = [['apps'], ['app', app], ['routes'], ['domains'], ['services'], ['orgs'], ['spaces'], ['target'], ['logs', app, '--recent']];

const cleanUp = [
  ['unbind-service', app, 'bench-db'],
  ['delete-service', 'bench-db', '-f'],
  ['delete', app, '-f', '-r'],
];

/** What must be refused to an auditor, with the right that lacks. */
const refused = [
  ['env', app],
  ['push', 'bench-refused', '-o', 'registry.example.com/none:1'],
  ['scale', app, '-i', '1'],
];

const namedRight = /may not \w+ "[^"]+"/;

export async function benchRoles({ developer, auditor }: Scene): Promise<Row[]> {
  for (const args of demo) await developer.ok(...args);
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
    { what: 'the demo as SpaceDeveloper', reach: 'works', measured: `works (${demo.length} commands)` },
    {
      what: 'every read as SpaceAuditor',
      reach: 'works; a refusal names the right',
      measured: `works (${reads.length} commands)`,
      beside: refusals.join(' · '),
    },
  ];
}
