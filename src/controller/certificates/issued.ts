// Certificates of cert-manager (docs/decisions/0074): one for each domain, and a listener of the Gateway for each that was issued. Until the gateway
// has loaded it, the domain stays in kf's own certificate; the condition CertificateIssued of the domain says which one counts.

import { certificateType, issuedName, issuedPrefix, issuerReference, type Certificate } from '../../lib/api/cert-manager.ts';
import { currentCondition, findCondition, removeCondition } from '../../lib/api/conditions.ts';
import { configMapType, type ConfigMap } from '../../lib/api/core.ts';
import { gatewayType, listeners, type Gateway, type Listener } from '../../lib/api/gateway.ts';
import { conditionTypes, kinds, labels, places } from '../../lib/api/group.ts';
import type { HttpsSettings, KfInfo, TlsIssuer } from '../../lib/api/kf-info.ts';
import { apiVersionOf, type Stored } from '../../lib/api/object.ts';
import type { CFDomain } from '../../lib/api/types.generated.ts';
import { KfError } from '../../lib/errors.ts';
import { contains } from '../runtime/merge-patch.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { conditionsWith, writeStatus, type Statement } from '../runtime/status.ts';

/** While a certificate is awaited; cert-manager's kinds are not watched, because most clusters do not have them. */
const soonMs = 3_000;
const lookMs = 60_000;
/** Of a Gateway (Gateway API). */
const mostListeners = 64;
const onlyKey = `${places.systemNamespace}/issued-certificates`;
const mark = `${labels.managedBy}=kf`;

interface Scene {
  info: KfInfo;
  issuer: TlsIssuer;
  domains: Stored<CFDomain>[];
  certificates: ReadonlyMap<string, Stored<Certificate>>;
}

const nameOf = ({ spec }: CFDomain): string => spec.name.toLowerCase().replace(/\.$/, '');

/** The domains with hosts at the gateway for which the operator gives no Secret, oldest first. */
function servedDomains(https: HttpsSettings, all: readonly Stored<CFDomain>[]): Stored<CFDomain>[] {
  const given = new Set(https.secrets.map(({ domain }) => domain));
  const age = ({ metadata }: Stored<CFDomain>): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  // Of any generation: the name never changes, and after any other change the certificate has to stay until the domain is looked at again.
  const isReady = (domain: Stored<CFDomain>): boolean => findCondition(domain, conditionTypes.ready)?.status === 'True';
  return all
    .filter((domain) => domain.metadata.deletionTimestamp === undefined && domain.spec.internal !== true)
    .filter((domain) => isReady(domain) && !given.has(nameOf(domain)))
    .toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
}

function buildCertificate(namespace: string, domain: Stored<CFDomain>, issuer: TlsIssuer): Certificate {
  const name = issuedName(domain);
  return {
    apiVersion: apiVersionOf(certificateType),
    kind: certificateType.kind,
    metadata: { name, namespace, labels: { [labels.managedBy]: 'kf' } },
    spec: {
      secretName: name,
      dnsNames: [`*.${nameOf(domain)}`, nameOf(domain)],
      issuerRef: issuerReference(issuer),
      usages: ['digital signature', 'key encipherment', 'server auth'],
    },
  };
}

/** The Certificates that kf made; undefined while the cluster has no such kind. */
async function listCertificates({ cluster, signal }: Context, ns: string): Promise<Stored<Certificate>[] | undefined> {
  try {
    return (await cluster.list(certificateType, { ns, labelSelector: mark, signal })).items;
  } catch (error) {
    if (error instanceof KfError && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** Makes, corrects and removes Certificates; returns those of the domains, by name. */
async function ensureCertificates(
  context: Context,
  { info, issuer, domains }: Omit<Scene, 'certificates'>,
  present: readonly Stored<Certificate>[],
): Promise<Scene['certificates']> {
  const { cluster, signal } = context;
  const live = new Map(present.map((certificate) => [certificate.metadata.name, certificate]));
  const kept = new Map<string, Stored<Certificate>>();
  for (const domain of domains) {
    const wanted = buildCertificate(info.gateway.namespace, domain, issuer);
    const found = live.get(issuedName(domain));
    live.delete(issuedName(domain));
    const { resourceVersion } = found?.metadata ?? {};
    const patch = { metadata: { resourceVersion: resourceVersion ?? '' }, spec: wanted.spec };
    const now =
      found === undefined
        ? await cluster.create(certificateType, wanted, { signal })
        : contains(found, { spec: wanted.spec })
          ? found
          : await cluster.mergePatch(certificateType, info.gateway.namespace, found.metadata.name, patch, { signal });
    kept.set(issuedName(domain), now);
  }
  for (const { metadata } of live.values())
    await cluster.delete(certificateType, metadata.namespace, metadata.name, { uid: metadata.uid, signal });
  return kept;
}

const secretOf = ({ tls }: Listener): string => tls?.certificateRefs?.[0]?.name ?? '';
const isOwn = (listener: Listener): boolean => secretOf(listener).startsWith(issuedPrefix);

/** A certificate that was issued counts until it ends, also while cert-manager tries in vain to make the next one. */
function isUsable(certificate: Certificate | undefined, isShown: boolean, now: number): boolean {
  if (certificate === undefined) return false;
  if (currentCondition(certificate, conditionTypes.ready)?.status === 'True') return true;
  return isShown && Date.parse(certificate.status?.notAfter ?? '') > now;
}

/** The listeners that the Gateway should have; those of setup stay as they are. */
export function wantedListeners(
  gateway: Gateway,
  { domains, certificates }: Pick<Scene, 'domains' | 'certificates'>,
  now: number,
): Listener[] {
  const all = gateway.spec?.listeners ?? [];
  const others = all.filter((listener) => !isOwn(listener));
  const model = others.find(({ name }) => name === listeners.https);
  if (model === undefined) return others;
  const shown = new Map(all.map((listener) => [listener.name, secretOf(listener)]));
  const made = domains.flatMap((domain): Listener[] => {
    const [name, secret] = [listeners.httpsOf(nameOf(domain)), issuedName(domain)];
    if (others.some((other) => other.name === name)) return [];
    if (!isUsable(certificates.get(secret), shown.get(name) === secret, now)) return [];
    const tls = { ...model.tls, certificateRefs: [{ group: '', kind: 'Secret', name: secret }] };
    return [{ ...model, name, hostname: `*.${nameOf(domain)}`, tls }];
  });
  return [...others, ...made.slice(0, mostListeners - others.length)];
}

const essence = (all: readonly Listener[]): string =>
  JSON.stringify(all.map((listener) => [listener.name, listener.port, secretOf(listener)]).toSorted());

async function ensureListeners(context: Context, scene: Scene): Promise<Stored<Gateway> | undefined> {
  const { namespace, name } = scene.info.gateway;
  const live = await context.cluster.get(gatewayType, namespace, name, context.signal);
  if (live === undefined) return undefined;
  const wanted = wantedListeners(live, scene, context.now());
  if (essence(wanted) === essence(live.spec?.listeners ?? [])) return live;
  const { resourceVersion } = live.metadata;
  const patch = { metadata: { resourceVersion }, spec: { listeners: wanted } };
  return context.cluster.mergePatch(gatewayType, namespace, name, patch, { signal: context.signal });
}

const issued: Statement = { type: conditionTypes.certificateIssued, status: 'True', reason: 'Issued', message: '' };
const notIssued = (reason: string, message: string): Statement => ({ ...issued, status: 'False', reason, message });

const because = (message = ''): string => (message === '' ? '' : `: ${message.replace(/\.$/, '')}`);

/** Why the Gateway has no listener with the domain's own certificate. */
function withoutListener(certificate: Certificate | undefined, what: string): Statement {
  if (isUsable(certificate, false, 0)) return notIssued('NoListener', `The Gateway has no room for a listener with ${what}.`);
  const ready = certificate && findCondition(certificate, conditionTypes.ready);
  return notIssued('NotIssued', `cert-manager has not issued ${what}${because(ready?.message)}.`);
}

/** Whether the gateway shows the domain's own certificate. */
function statementOf(domain: Stored<CFDomain>, { info, certificates }: Scene, gateway: Stored<Gateway> | undefined): Statement {
  const what = `the certificate of ${domain.spec.name} (Certificate ${info.gateway.namespace}/${issuedName(domain)})`;
  const named = ({ name }: { name: string }): boolean => name === listeners.httpsOf(nameOf(domain));
  if (gateway?.spec?.listeners?.some(named) !== true) return withoutListener(certificates.get(issuedName(domain)), what);
  const conditions = gateway.status?.listeners?.find(named)?.conditions ?? [];
  const resolved = conditions.find(({ type }) => type === 'ResolvedRefs');
  if (resolved?.status === 'True' && resolved.observedGeneration === gateway.metadata.generation) return issued;
  return notIssued('NotLoaded', `The gateway has not loaded ${what}${resolved?.status === 'False' ? because(resolved.message) : ''}.`);
}

async function write(context: Context, domain: Stored<CFDomain>, statement: Statement | undefined): Promise<void> {
  const { conditions } = domain.status ?? {};
  const wanted =
    statement === undefined ? removeCondition(conditions, conditionTypes.certificateIssued) : conditionsWith(domain, statement);
  await writeStatus(context, kinds.domain, domain, { ...domain.status, conditions: wanted });
}

async function withIssuer(context: Context, info: KfInfo, https: HttpsSettings, issuer: TlsIssuer): Promise<number> {
  const all = context.stores.of(kinds.domain).list(info.root);
  const domains = servedDomains(https, all);
  const present = await listCertificates(context, info.gateway.namespace);
  const certificates =
    present === undefined ? new Map<string, never>() : await ensureCertificates(context, { info, issuer, domains }, present);
  const scene = { info, issuer, domains, certificates };
  const gateway = await ensureListeners(context, scene);
  const absent = notIssued('NoCertManager', 'The cluster has no cert-manager any more: its kind Certificate is missing.');
  let isSettled = true;
  for (const domain of all) {
    const statement = domains.includes(domain) ? (present === undefined ? absent : statementOf(domain, scene, gateway)) : undefined;
    if (statement?.status === 'False') isSettled = false;
    if (statement !== undefined || findCondition(domain, conditionTypes.certificateIssued) !== undefined)
      await write(context, domain, statement);
  }
  return isSettled ? lookMs : soonMs;
}

export const issuedCertificatesReconciler: Reconciler = {
  name: 'issued-certificates',
  workers: 1,
  watches: [
    watch<ConfigMap>(configMapType, (map) => (map.metadata.name === places.info ? [onlyKey] : [])),
    watch<CFDomain>(kinds.domain, () => [onlyKey]),
  ],
  reconcile: async (_key, context) => {
    const info = context.info();
    const { https } = info.gateway;
    if (https?.issuer !== undefined) return { requeueAfterMs: await withIssuer(context, info, https, https.issuer) };
    // Setup removes the listeners and the Certificates, when kf's own certificate has the names of these domains again.
    for (const domain of context.stores.of(kinds.domain).list(info.root))
      if (findCondition(domain, conditionTypes.certificateIssued) !== undefined) await write(context, domain, undefined);
    return undefined;
  },
};
