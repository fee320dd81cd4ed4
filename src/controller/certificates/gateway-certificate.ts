// The gateway's certificate, for all domains without one of the operator's, and the authority that signs it (docs/decisions/0058). Setup makes empty
// Secrets, so that the controller needs no right to create any; this fills them and renews the certificate before it ends.

import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { isIssued } from '../../lib/api/cert-manager.ts';
import { certificateFields as fields } from '../../lib/api/certificates.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { configMapType, secretType, type ConfigMap, type Secret } from '../../lib/api/core.ts';
import { conditionTypes, kinds, places } from '../../lib/api/group.ts';
import type { HttpsSettings, KfInfo } from '../../lib/api/kf-info.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFDomain } from '../../lib/api/types.generated.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import type { KeyPair, Period } from './x509.ts';

const dayMs = 24 * 3_600_000;
/** Clocks of clients may be slow. */
const earlyMs = 3_600_000;
const authorityDays = 3_650;
/** An authority with less time left is replaced. */
const authorityLeastDays = 30;
const certificateDays = 365;
/** A certificate is renewed when a third of its time is left. */
const renewShare = 1 / 3;
const lookMs = 300_000;
const missingMs = 5_000;
/** Every name is sent to every client at the start of a connection. */
const mostDomains = 100;
const commonNameLength = 64;
const onlyKey = `${places.systemNamespace}/${places.gatewayCertificate}`;

const plain = (name: string): string => name.toLowerCase().replace(/\.$/, '');

const period = (now: number, days: number, latest = Infinity): Period => ({
  notBefore: new Date(now - earlyMs),
  notAfter: new Date(Math.min(now + days * dayMs, latest)),
});

/** Nobody can register it (RFC 6761): the name of a certificate that no domain needs. */
const noDomain = 'kf.invalid';

/**
 * The names of the certificate: every host of each domain, and the domain itself. A gateway that has two certificates for a host shows either, so a
 * domain that has its own is left out.
 */
export function certificateNames(info: KfInfo, https: HttpsSettings, domains: readonly Stored<CFDomain>[]): string[] {
  // Ready of any generation: the name never changes, and after any other change the certificate has to stay until the domain is looked at again.
  const isUsed = (domain: Stored<CFDomain>): boolean =>
    domain.metadata.deletionTimestamp === undefined &&
    domain.spec.internal !== true &&
    findCondition(domain, conditionTypes.ready)?.status === 'True';
  const age = ({ metadata }: Stored<CFDomain>): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  const oldestFirst = domains.filter(isUsed).toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
  const all = [info.defaultDomain, ...oldestFirst.map(({ spec }) => spec.name)].map(plain);
  const issued = https.issuer === undefined ? [] : domains.filter(isIssued).map(({ spec }) => plain(spec.name));
  const given = new Set([...https.secrets.map(({ domain }) => domain), ...issued]);
  const own = [...new Set(all)].filter((name) => !given.has(name)).slice(0, mostDomains);
  return own.length === 0 ? [noDomain] : own.flatMap((name) => [`*.${name}`, name]);
}

export interface ReadPair extends KeyPair {
  parsed: X509Certificate;
}

/** The certificate and key of a Secret; undefined for an empty or damaged one, and for a key that is not the certificate's. */
export function pairIn(secret: Pick<Secret, 'data'>): ReadPair | undefined {
  const text = (field: string): string => Buffer.from(secret.data?.[field] ?? '', 'base64').toString('utf8');
  const [certificate, key] = [text(fields.certificate), text(fields.key)];
  try {
    const parsed = new X509Certificate(certificate);
    return parsed.checkPrivateKey(createPrivateKey(key)) ? { certificate, key, parsed } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a certificate can stay: the authority signed it for exactly these names, and more than a third of its time is left. */
export function isGoodCertificate(live: X509Certificate, authority: X509Certificate, names: readonly string[], now: number): boolean {
  const [from, to] = [live.validFromDate.getTime(), live.validToDate.getTime()];
  const hasTime = from <= now && to - now > (to - from) * renewShare;
  const has = live.subjectAltName === names.map((name) => `DNS:${name}`).join(', ');
  return has && live.checkIssued(authority) && live.verify(authority.publicKey) && (hasTime || to >= authority.validToDate.getTime());
}

async function read(context: Context, info: KfInfo, name: string): Promise<Stored<Secret>> {
  const secret = await context.cluster.get(secretType, info.controller.namespace, name, context.signal);
  if (secret === undefined) throw new WaitingError('NoCertificate', `The Secret '${name}' is missing: kf setup makes it.`, missingMs);
  return secret;
}

const encode = (text: string): string => Buffer.from(text).toString('base64');

async function write(context: Context, live: Stored<Secret>, pair: KeyPair, authority: string): Promise<void> {
  const data = {
    [fields.certificate]: encode(pair.certificate),
    [fields.key]: encode(pair.key),
    [fields.authority]: encode(authority),
  };
  await context.cluster.replace(secretType, { ...live, data }, { signal: context.signal });
}

/** The authority, which is made once. */
async function ensureAuthority(context: Context, info: KfInfo): Promise<ReadPair> {
  const live = await read(context, info, places.authority);
  const found = pairIn(live);
  if (found !== undefined && found.parsed.validToDate.getTime() - context.now() > authorityLeastDays * dayMs) return found;
  const { createAuthority } = await import('./x509.ts');
  // Browsers and trust stores show this name; two installations for one domain differ by its end.
  const name = `kf CA ${randomBytes(4).toString('hex')} ${info.defaultDomain}`.slice(0, commonNameLength);
  const made = createAuthority(name, period(context.now(), authorityDays));
  await write(context, live, made, made.certificate);
  context.log.info('made the certification authority of the gateway', { name });
  return { ...made, parsed: new X509Certificate(made.certificate) };
}

/** Makes the authority's certificate known to everybody. */
async function publish(context: Context, info: KfInfo, certificate: string): Promise<void> {
  const live = await context.cluster.get(configMapType, info.root, places.authorityCertificate, context.signal);
  if (live === undefined || live.data?.[fields.authority] === certificate) return;
  const metadata = { uid: live.metadata.uid };
  await context.cluster.mergePatch(
    configMapType,
    info.root,
    places.authorityCertificate,
    { metadata, data: { [fields.authority]: certificate } },
    { signal: context.signal },
  );
}

async function ensureCertificate(context: Context, info: KfInfo, authority: ReadPair, names: string[]): Promise<void> {
  const live = await read(context, info, places.gatewayCertificate);
  const found = pairIn(live);
  if (found !== undefined && isGoodCertificate(found.parsed, authority.parsed, names, context.now())) return;
  const { issueServerCertificate } = await import('./x509.ts');
  const validity = period(context.now(), certificateDays, authority.parsed.validToDate.getTime());
  await write(context, live, issueServerCertificate(authority, 'kf gateway', names, validity), authority.certificate);
  context.log.info('made a certificate for the gateway', { names: names.length, until: validity.notAfter.toISOString() });
}

export const gatewayCertificateReconciler: Reconciler = {
  name: 'gateway-certificate',
  workers: 1,
  watches: [
    watch<ConfigMap>(configMapType, (map) => (map.metadata.name === places.info ? [onlyKey] : [])),
    watch<CFDomain>(kinds.domain, () => [onlyKey]),
  ],
  reconcile: async (_key, context) => {
    const info = context.info();
    const { https } = info.gateway;
    if (https === undefined) return undefined;
    const names = certificateNames(info, https, context.stores.of(kinds.domain).list(info.root));
    const authority = await ensureAuthority(context, info);
    await publish(context, info, authority.certificate);
    await ensureCertificate(context, info, authority, names);
    return { requeueAfterMs: lookMs };
  },
};
