// Tests whether the cluster's network enforces policies; the test runs beside the rest of setup.

import type { Part } from '../part.ts';
import { settleNetwork, startNetworkProof } from '../network-proof.ts';
import { setupSet } from '../setup-set.ts';

export const part: Part = {
  name: 'network-check',
  requires: ['registry'],
  objects: () => [],
  prove: ({ cluster, report, plan, asked, signal }) => {
    const proof = startNetworkProof(cluster, plan, asked, signal);
    return async () => ({ network: await settleNetwork({ cluster, report, set: setupSet }, plan, proof) });
  },
};
