// The Secrets of the gateway's certificates: those that the operator gives are checked, and the empty ones that the controller fills are made.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { certificateFields as fields, tlsSecretType } from '../../api/certificates.ts';
import { secretType, type Secret } from '../../api/core.ts';
import { places } from '../../api/group.ts';
import type { HttpsSettings } from '../../api/kf-info.ts';
import { KfError, messageOf } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import { partOfLabel, systemNamespace } from '../../../templates/setup/options.ts';

const textIn = (secret: Secret, field: string): string => Buffer.from(secret.data?.[field] ?? '', 'base64').toString('utf8');

/** Why a Secret cannot serve the hosts of a domain, as the end of a sentence; undefined when it can. */
export function faultOf(secret: Secret | undefined, domain: string, now: number): string | undefined {
  if (secret === undefined) return 'does not exist';
  const lacking = [fields.certificate, fields.key].find((field) => textIn(secret, field) === '');
  if (lacking !== undefined) return `has no '${lacking}'`;
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(textIn(secret, fields.certificate));
    if (!certificate.checkPrivateKey(createPrivateKey(textIn(secret, fields.key))))
      return `has a key in '${fields.key}' that is not its certificate's`;
  } catch (error) {
    return `has no certificate with its key as PEM: ${messageOf(error)}`;
  }
  if (certificate.validToDate.getTime() <= now)
    return `has a certificate that ended on ${certificate.validToDate.toISOString().slice(0, 10)}`;
  // The names of hosts below a domain are known later.
  if (certificate.checkHost(`any-host.${domain}`) !== undefined) return undefined;
  return `has a certificate for ${certificate.subjectAltName ?? certificate.subject}, which does not cover *.${domain}`;
}

/** Checks the Secrets that the operator gives, before anything is written. @throws KfError naming each Secret that cannot be used, and why */
export async function checkTlsSecrets(cluster: Cluster, secrets: HttpsSettings['secrets']): Promise<void> {
  const checked = await Promise.all(
    secrets.map(async ({ domain, namespace, name }) => {
      const fault = faultOf(await cluster.get(secretType, namespace, name), domain, Date.now());
      return fault === undefined ? [] : [{ namespace, text: `The Secret '${namespace}/${name}' for the domain '${domain}' ${fault}.` }];
    }),
  );
  const faults = checked.flat();
  const [first] = faults;
  if (first === undefined) return;
  throw new KfError('not-found', faults.map(({ text }) => text).join('\n'), {
    hints: [`kubectl -n ${first.namespace} create secret tls NAME --cert=CERTIFICATE.pem --key=KEY.pem`],
  });
}

const emptySecret = (name: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: systemNamespace, labels: { [partOfLabel]: 'setup' } },
  type: tlsSecretType,
  // The API server requires these two keys.
  data: { [fields.certificate]: '', [fields.key]: '' },
});

/** Makes the Secrets that the controller fills, unless they exist: it may change these two and create none. */
export async function ensureCertificateSecrets(cluster: Cluster): Promise<void> {
  for (const name of [places.authority, places.gatewayCertificate]) {
    if ((await cluster.get(secretType, systemNamespace, name)) !== undefined) continue;
    try {
      await cluster.create(secretType, emptySecret(name));
    } catch (error) {
      // Another setup was faster.
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
