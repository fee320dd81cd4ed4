// Reads the report about the builder, which the short-lived pod in the builder image prints.

import { cutText } from '../../lib/api/text.ts';
import type { Offered } from '../../lib/api/build-order.ts';
import { readToml, tableIn, tablesIn, textIn, unpackText, UntrustedError } from './untrusted.ts';

export interface BuilderReport {
  uid: number;
  gid: number;
  /** As in GOARCH. */
  architecture: string;
  stack: string;
  description: string;
  /** First the first member of each group of the builder's order, then the others. */
  buildpacks: Offered[];
}

const architectures: Record<string, string> = { x86_64: 'amd64', aarch64: 'arm64', armv7l: 'arm', s390x: 's390x', ppc64le: 'ppc64le' };
/** More than any builder has; buildpacks after these are not offered. */
const mostOffered = 500;
const longestName = 255;

/** Buildpacks of the groups of an order.toml, each once. An unreadable order offers none. */
function orderOf(packed: string | undefined): Offered[] {
  if (packed === undefined || packed === '') return [];
  let groups;
  try {
    const { order } = readToml(unpackText(packed, 'The order.toml'), 'The order.toml');
    groups = (Array.isArray(order) ? tablesIn(order) : [tableIn(order)]).flatMap(({ group }) => tablesIn(group));
  } catch (error) {
    if (error instanceof UntrustedError) return [];
    throw error;
  }
  const seen = new Map<string, Offered>();
  for (const group of groups) {
    const offered = { id: textIn(group['id']), version: textIn(group['version']) };
    if (offered.id === '' || offered.id.length > longestName || offered.version.length > longestName) continue;
    if (!seen.has(`${offered.id}@${offered.version}`)) seen.set(`${offered.id}@${offered.version}`, offered);
  }
  return [...seen.values()].slice(0, mostOffered);
}

/** Reads lines `key=value` as src/templates/builder-pod.ts prints them. A missing key gets the usual value. */
export function readBuilderReport(message: string): BuilderReport {
  const facts = new Map(
    message.split('\n').map((line): [string, string] => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1).trim()]),
  );
  const number = (key: string): number => {
    const value = Number(facts.get(key));
    return Number.isInteger(value) && value > 0 ? value : 1000;
  };
  const machine = facts.get('machine') ?? '';
  const stack = facts.get('stack') ?? '';
  return {
    uid: number('uid'),
    gid: number('gid'),
    architecture: architectures[machine] ?? cutText(machine, longestName),
    stack: stack === '' ? 'unknown' : cutText(stack, longestName),
    description: cutText(facts.get('description') ?? '', longestName),
    buildpacks: orderOf(facts.get('order')),
  };
}
