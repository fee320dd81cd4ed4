// Maintains the NetworkPolicies of a space.

import { nodeType } from '../../lib/api/core.ts';
import { networkPolicyType, type NetworkPolicy } from '../../lib/api/network-policy.ts';
import { spacePolicies, spacePolicyNames } from '../../templates/network-policies.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';
import { installationEnv } from '../builds/env.ts';
import type { BuildHosts } from '../builds/hosts.ts';
import { ensureObject } from './namespaces.ts';

/** Creates or restores the policies of one space, or removes them if setup switched them off. Policies of others stay: they only allow more. */
export async function ensureNetworkPolicies(context: Context, space: string, hosts: BuildHosts): Promise<void> {
  const info = context.info();
  const settings = info.network;
  if (settings === undefined) return removePolicies(context, space);
  const nodes = context.stores.of(nodeType).list();
  const addresses = nodes.flatMap(({ status }) => (status?.addresses ?? []).map(({ address }) => address));
  const readEnv = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(await installationEnv(context)).map(([key, text]) => [key, Buffer.from(text, 'base64').toString('utf8')]),
    );
  const builds = await hosts.targets(info, context.now(), readEnv);
  const wanted = spacePolicies(space, { info, settings, builds, closed: [...settings.apiServer, ...addresses] });
  await Promise.all(wanted.map((policy) => ensurePolicy(context, policy)));
}

/** Creates or restores one policy. */
export async function ensurePolicy(context: Context, wanted: NetworkPolicy): Promise<void> {
  const { namespace, name = '' } = wanted.metadata;
  const live = context.stores.of(networkPolicyType).get(namespace, name);
  if (live === undefined || isEqual(live.spec, wanted.spec)) return ensureObject(context, networkPolicyType, wanted);
  // Rules that somebody added are removed too: a policy allows everything that any of its rules allows.
  const { podSelector, ...rules } = wanted.spec;
  const spec = { ingress: null, egress: null, ...rules, podSelector: { matchLabels: null, matchExpressions: null, ...podSelector } };
  const patch = { metadata: { resourceVersion: live.metadata.resourceVersion }, spec };
  await context.cluster.mergePatch(networkPolicyType, namespace, name, patch, { signal: context.signal });
}

async function removePolicies(context: Context, space: string): Promise<void> {
  for (const name of Object.values(spacePolicyNames)) {
    const live = context.stores.of(networkPolicyType).get(space, name);
    if (live?.metadata.uid === undefined) continue;
    await context.cluster.delete(networkPolicyType, space, name, { uid: live.metadata.uid, signal: context.signal });
  }
}
