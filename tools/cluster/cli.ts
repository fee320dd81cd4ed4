// Program: `npm run cluster -- prepare | up | down | status | env | node`.
import { parseArgs } from 'node:util';

import { down } from './down.ts';
import { actOnNode, nodeActions } from './nodes.ts';
import { prepareRings } from './prepare.ts';
import { clusterStatus, environmentLines } from './status.ts';
import { readState } from './state.ts';
import type { ClusterState } from './state.ts';
import { up } from './up.ts';
import type { UpOptions } from './up.ts';

const usage = `usage: npm run cluster -- COMMAND [--name NAME]

  prepare build everything that clusters are made of, without starting one
  up      bring a cluster up; a healthy one stays as it is
            --control-plane-only   etcd, API server and controller manager, without a node
            --kwok N               N nodes played by kwok, with a scheduler
            --nodes N              N real nodes; the first has the control plane
  down    end it and remove its files
  status  what runs and what is ready; exit code 1 when not all is
  env     settings as shell exports:  eval "$(npm run -s cluster -- env)"
  node kill|freeze|thaw|start N
          end node N without warning, stop it where it is, let it go on, start it again

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

/** The options of `up`. */
function sizeOf(values: { 'control-plane-only': boolean; kwok: string; nodes: string }): Pick<UpOptions, 'mode' | 'kwokNodes' | 'nodes'> {
  const [kwokNodes, nodes] = [Number(values.kwok), Number(values.nodes)];
  const isPlaneOnly = values['control-plane-only'];
  if (!Number.isInteger(kwokNodes) || kwokNodes < 0) throw new Error('--kwok takes a number of nodes.');
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > 9) throw new Error('--nodes takes a number from 1 to 9.');
  if (isPlaneOnly && nodes > 1) throw new Error('A control plane alone has no nodes: use either --control-plane-only or --nodes.');
  return { mode: isPlaneOnly ? 'control-plane' : 'full', kwokNodes, nodes };
}

function changeNode(name: string, [action, node]: string[]): Promise<void> {
  const known = nodeActions.find((one) => one === action);
  if (known === undefined) throw new Error(`\`node\` takes one of ${nodeActions.join(', ')} and the number of a node.`);
  return actOnNode(name, known, Number(node), log);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      name: { type: 'string', default: 'main' },
      'control-plane-only': { type: 'boolean', default: false },
      kwok: { type: 'string', default: '0' },
      nodes: { type: 'string', default: '1' },
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
    case 'up':
      print((await clusterStatus(await up({ name, log, ...sizeOf(values) }))).lines);
      return;
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
    case 'node':
      return changeNode(name, positionals.slice(1));
    default:
      print([usage]);
      if (command !== 'help') process.exitCode = 1;
  }
}

main().catch((error: unknown) => {
  log(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
