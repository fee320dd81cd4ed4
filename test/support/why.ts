// The cause that `kf why` names, on a real cluster.

import type { WhyDetails } from '../../src/lib/api/results.ts';
import type { Kf } from './kf.ts';

/** What `kf why` says of an app. */
export async function why(kf: Kf, ...argv: string[]): Promise<WhyDetails> {
  const { stdout } = await kf.ok('why', ...argv, '--json');
  return (JSON.parse(stdout) as { result: WhyDetails }).result;
}
