// What the short pod in the builder image prints about it.

import { gunzipSync } from 'node:zlib';
import type { Offered } from './build-order.ts';
import { parseToml } from './build-toml.ts';

export interface BuilderReport {
  uid: number;
  gid: number;
  /** As in GOARCH. */
  architecture: string;
  stack: string;
  description: string;
  /** First member of each group of the builder's order, then the others. */
  buildpacks: Offered[];
}

const architectures: Record<string, string> = { x86_64: 'amd64', aarch64: 'arm64', armv7l: 'arm', s390x: 's390x', ppc64le: 'ppc64le' };
const longestOrder = 1024 * 1024;

function orderOf(packed: string | undefined): Offered[] {
  if (packed === undefined || packed === '') return [];
  const text = gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: longestOrder }).toString('utf8');
  const seen = new Map<string, Offered>();
  for (const { name, values } of parseToml(text)) {
    const { id, version } = values;
    if (name !== 'order.group' || typeof id !== 'string') continue;
    const offered = { id, version: typeof version === 'string' ? version : '' };
    if (!seen.has(`${id}@${offered.version}`)) seen.set(`${id}@${offered.version}`, offered);
  }
  return [...seen.values()];
}

/** Lines `key=value` as src/templates/builder-pod.ts prints them. What is missing gets the usual value. */
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
    architecture: architectures[machine] ?? machine,
    stack: stack === '' ? 'unknown' : stack,
    description: facts.get('description') ?? '',
    buildpacks: orderOf(facts.get('order')),
  };
}
