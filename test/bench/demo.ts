// `npm run demo` and `npm test`, as a new user runs them.

import path from 'node:path';
import { run } from '../../tools/cluster/process.ts';
import { timed } from './scene.ts';
import type { Row } from './table.ts';

/** An app with dependencies, which the demo downloads for a cluster without internet. */
const folder = path.resolve('test/fixtures/apps/node-deps');

/** Uses the bench's own cluster: a demo that somebody has running is neither used nor taken down. */
export async function benchDemo(): Promise<Row[]> {
  const env = { ...process.env, KF_DEMO_CLUSTER: 'bench-demo' };
  try {
    const { stdout } = await timed(process.execPath, ['test/demo.ts', '--path', folder], env);
    const first = /The first 200 came ([\d.]+) s/.exec(stdout)?.[1] ?? 'never';
    const [began = NaN, ended = NaN] = [/^\[([\d.]+) s\] Your folder/m, /^\[([\d.]+) s\] Its logs/m].map((said) =>
      Number(said.exec(stdout)?.[1]),
    );
    if (!/yours\s+started/.test(stdout)) throw new Error('The demo does not show the app "yours" of the folder that it was given.');
    return [
      { what: '`npm run demo`, binaries cached, to the first 200', reach: '≤ 180 s', measured: `${first} s` },
      { what: "… a folder of one's own (`--path`)", reach: '', measured: `${(ended - began).toFixed(1)} s`, beside: path.basename(folder) },
    ];
  } finally {
    // An interruption does not end this.
    await run(process.execPath, ['test/demo.ts', '--down'], { env });
  }
}

export async function benchSuite(): Promise<Row[]> {
  const { milliseconds, stdout } = await timed(process.execPath, ['test/run.ts']);
  const last = stdout.trim().split('\n').at(-1) ?? '';
  return [
    { what: '`npm test`, warm', reach: '≤ 25 min, none skipped', measured: `${(milliseconds / 60_000).toFixed(1)} min`, beside: last },
  ];
}
