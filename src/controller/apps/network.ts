// Reconciles the network policies of an app: a connection is allowed when both apps have a half of the policy, whatever spaces they are in
// (docs/decisions/0059).

import { configMapType } from '../../lib/api/core.ts';
import { kinds, labels } from '../../lib/api/group.ts';
import { networkPolicyType, type NetworkPolicy } from '../../lib/api/network-policy.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFApp, CFNetworkPolicy } from '../../lib/api/types.generated.ts';
import { appNetworkPolicy, appPolicyName } from '../../templates/network-policies.ts';
import { index, watch, type Context, type Reconciler, type Stores } from '../runtime/reconciler.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { ensurePolicy } from '../tenancy/network.ts';

const appKey = ({ metadata, spec }: Stored<CFNetworkPolicy>): string => `${metadata.namespace}/${spec.appRef.name}`;
const peerKey = ({ spec: { peer } }: Stored<CFNetworkPolicy>): string => `${peer.space}/${peer.app}`;

const halvesByApp = index<CFNetworkPolicy>(kinds.networkPolicy, 'app', (half) => [appKey(half)]);
const halvesByPeer = index<CFNetworkPolicy>(kinds.networkPolicy, 'peer', (half) => [peerKey(half)]);

const halvesOf = (key: string, stores: Stores): Stored<CFNetworkPolicy>[] =>
  stores
    .of(kinds.networkPolicy)
    .by(halvesByApp.name, key)
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined);

/** An app, and those whose policies name it. */
function concerned(app: Stored<CFApp>, stores: Stores): string[] {
  const naming = stores.of(kinds.networkPolicy).by(halvesByPeer.name, keyOf(app));
  return [...new Set([keyOf(app), ...naming.map(appKey)])];
}

/** True when the other app exists, is the one that was meant, and has the other half for the same ports. */
function isWhole(app: Stored<CFApp>, { spec }: Stored<CFNetworkPolicy>, stores: Stores): boolean {
  const { peer, direction, protocol, port, endPort } = spec;
  if (stores.of(kinds.app).get(peer.space, peer.app)?.metadata.uid !== peer.uid) return false;
  const { namespace, name, uid } = app.metadata;
  return halvesOf(`${peer.space}/${peer.app}`, stores).some(
    ({ spec: other }) =>
      other.direction !== direction &&
      other.peer.space === namespace &&
      other.peer.app === name &&
      other.peer.uid === uid &&
      other.protocol === protocol &&
      other.port === port &&
      other.endPort === endPort,
  );
}

async function removePolicy(context: Context, ns: string, app: string): Promise<void> {
  const live = context.stores.of(networkPolicyType).get(ns, appPolicyName(app));
  if (live === undefined || live.metadata.deletionTimestamp !== undefined) return;
  await context.cluster.delete(networkPolicyType, ns, live.metadata.name, { uid: live.metadata.uid, signal: context.signal });
}

export const appNetworkReconciler: Reconciler = {
  name: 'app-network',
  watches: [
    watch<CFNetworkPolicy>(kinds.networkPolicy, (half) => [appKey(half), peerKey(half)]),
    watch<CFApp>(kinds.app, concerned),
    watch<NetworkPolicy>(networkPolicyType, ({ metadata: { namespace, labels: marks } }) => {
      const guid = marks?.[labels.appGuid];
      return guid === undefined ? [] : [`${namespace}/${guid}`];
    }),
    // The installation's settings say whether kf makes NetworkPolicies.
    watch(configMapType, (_info, stores) => [...new Set(stores.of(kinds.networkPolicy).list().map(appKey))]),
  ],
  indexes: [halvesByApp, halvesByPeer],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const app = context.stores.of(kinds.app).get(ns, name);
    const isLive = app !== undefined && app.metadata.deletionTimestamp === undefined;
    const whole = isLive ? halvesOf(key, context.stores).filter((half) => isWhole(app, half, context.stores)) : [];
    // If kf makes no NetworkPolicies, everything is allowed.
    if (!isLive || whole.length === 0 || context.info().network === undefined) await removePolicy(context, ns, name);
    else await ensurePolicy(context, appNetworkPolicy(app, whole));
    return undefined;
  },
};
