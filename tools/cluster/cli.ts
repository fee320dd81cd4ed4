// Program: `npm run cluster -- prepare | up | down | status | env`.
import { parseArgs } from 'node:util';

import { down } from './down.ts';
import { prepareRings } from './prepare.ts';
import { clusterStatus, environmentLines } from './status.ts';
import { readState } from './state.ts';
import type { ClusterState } from './state.ts';
import { up } from './up.ts';

const usage = `usage: npm run cluster -- COMMAND [--name NAME]

  prepare build everything that clusters are made of, without starting one
  up      bring a cluster up; a healthy one stays as it is
            --control-plane-only   etcd, API server and controller manager, without a node
            --kwok N               N nodes played by kwok, with a scheduler
  down    end it and remove its files
  status  what runs and what is ready; exit code 1 when not all is
  env     settings as shell exports:  eval "$(npm run -s cluster -- env)"

NAME is "main" unless given.`;

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

function print(lines: string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

function known(name: string): ClusterState {
  const state = readState(name);
  if (!state) throw new Error(`There is no cluster ${name}. Run \`npm run cluster -- up --name ${name}\`.`);
  return state;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      name: { type: 'string', default: 'main' },
      'control-plane-only': { type: 'boolean', default: false },
      kwok: { type: 'string', default: '0' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const { name } = values;
  // The name becomes part of a path, a cgroup and a kubeconfig context.
  if (!/^[a-z][a-z0-9-]{0,19}$/.test(name))
    throw new Error(`"${name}" cannot name a cluster: lower case letters, digits and hyphens, at most 20.`);
  const command = values.help ? 'help' : positionals[0];
  switch (command) {
    case 'prepare':
      return prepareRings(['unit', 'api', 'cluster'], log);
    case 'up': {
      const kwokNodes = Number(values.kwok);
      if (!Number.isInteger(kwokNodes) || kwokNodes < 0) throw new Error('--kwok takes a number of nodes.');
      const state = await up({ name, mode: values['control-plane-only'] ? 'control-plane' : 'full', kwokNodes, log });
      print((await clusterStatus(state)).lines);
      return;
    }
    case 'down':
      log((await down(name)) ? `cluster ${name} is gone` : `there is no cluster ${name}`);
      return;
    case 'status': {
      const status = await clusterStatus(known(name));
      print(status.lines);
      if (!status.ready) process.exitCode = 1;
      return;
    }
    case 'env':
      print(environmentLines(known(name)));
      return;
    default:
      print([usage]);
      if (command !== 'help') process.exitCode = 1;
  }
}

main().catch((error: unknown) => {
  log(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
