// `npm run demo` and `npm test`, as a newcomer runs them.

import { timed } from './scene.ts';
import type { Row } from './table.ts';

/** On a cluster of the bench's own: one that a person has running under the demo's name is neither used nor taken down. */
export async function benchDemo(): Promise<Row[]> {
  const env = { ...process.env, KF_DEMO_CLUSTER: 'bench-demo' };
  try {
    const { stdout } = await timed(process.execPath, ['test/demo.ts'], env);
    const first = /The first 200 came ([\d.]+) s/.exec(stdout)?.[1] ?? 'never';
    return [{ what: '`npm run demo`, binaries cached, to the first 200', reach: '≤ 180 s', measured: `${first} s` }];
  } finally {
    await timed(process.execPath, ['test/demo.ts', '--down'], env);
  }
}

export async function benchSuite(): Promise<Row[]> {
  const { milliseconds, stdout } = await timed(process.execPath, ['test/run.ts']);
  const last = stdout.trim().split('\n').at(-1) ?? '';
  return [
    { what: '`npm test`, warm', reach: '≤ 25 min, none skipped', measured: `${(milliseconds / 60_000).toFixed(1)} min`, beside: last },
  ];
}
