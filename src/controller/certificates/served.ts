// What certificate the gateway shows for a domain, read by a handshake with the gateway, so that it is true for certificates of the operator too. The
// status of the domain has it; `kf domains` shows it.

import type { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { currentCondition } from '../../lib/api/conditions.ts';
import { configMapType, type ConfigMap } from '../../lib/api/core.ts';
import { conditionTypes, kinds, places } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFDomain, DomainCertificate } from '../../lib/api/types.generated.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { writeStatus } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';

const timeoutMs = 5_000;
const lookMs = 60_000;
/** While the gateway has no certificate for the domain; a new one takes a moment. */
const soonMs = 10_000;
/** Any host of the domain has the same certificate. */
const anyHost = 'kf-certificate-check';

/** The end of a distinguished name that people recognise: `CN=R13, O=Example` is `R13`. */
function nameOf(distinguishedName: string): string {
  const attributes = new Map(distinguishedName.split('\n').map((line) => line.split('=', 2) as [string, string]));
  return attributes.get('CN') ?? attributes.get('O') ?? distinguishedName;
}

/** The certificate that a server shows for this name; undefined when it is not for this name. @throws Error when no handshake is possible */
export async function servedCertificate(address: string, name: string, signal: AbortSignal): Promise<DomainCertificate | undefined> {
  const { hostname, port } = new URL(address);
  const shown = await new Promise<X509Certificate | undefined>((resolve, reject) => {
    // Only the certificate is of interest; whether a client trusts it is for the client to say.
    const socket = connect({ host: hostname, port: port === '' ? 443 : Number(port), servername: name, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate());
      socket.destroy();
    });
    socket.on('error', reject);
    const stop = (): void => void socket.destroy(new Error('The handshake took too long.'));
    signal.addEventListener('abort', stop, { once: true });
    socket.on('close', () => signal.removeEventListener('abort', stop));
  });
  if (shown?.checkHost(name) === undefined) return undefined;
  return { issuer: nameOf(shown.issuer), notAfter: `${shown.validToDate.toISOString().slice(0, 19)}Z` };
}

/** Undefined removes what the status has. */
async function write(context: Context, domain: Stored<CFDomain>, certificate: DomainCertificate | undefined): Promise<void> {
  const { certificate: _before, ...status } = domain.status ?? {};
  await writeStatus(context, kinds.domain, domain, certificate === undefined ? status : { ...status, certificate });
}

export const servedCertificatesReconciler: Reconciler = {
  name: 'served-certificates',
  watches: [
    watch(kinds.domain),
    watch<ConfigMap>(configMapType, (map, stores) => (map.metadata.name === places.info ? stores.of(kinds.domain).list().map(keyOf) : [])),
  ],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const domain = context.stores.of(kinds.domain).get(ns, name);
    if (domain === undefined || domain.metadata.deletionTimestamp !== undefined) return undefined;
    if (currentCondition(domain, conditionTypes.ready)?.status !== 'True') return undefined;
    const address = context.info().gateway.https?.internalAddress;
    if (address === undefined || domain.spec.internal === true) {
      await write(context, domain, undefined);
      return undefined;
    }
    const host = `${anyHost}.${domain.spec.name.replace(/\.$/, '')}`;
    const outcome = context.outside(`certificate of ${address} for ${host}`, timeoutMs, (signal) =>
      servedCertificate(address, host, signal),
    );
    if (outcome === undefined) return undefined;
    // A gateway that is away for a moment has no other certificate afterwards.
    if (!outcome.ok) return { requeueAfterMs: soonMs };
    await write(context, domain, outcome.value);
    return { requeueAfterMs: outcome.value === undefined ? soonMs : lookMs };
  },
};
