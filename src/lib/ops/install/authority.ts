// `kf ca-certificate`: the certificate of the authority that signs the gateway's certificate, for clients that check it.

import { X509Certificate } from 'node:crypto';
import { isIssued } from '../../api/cert-manager.ts';
import { certificateFields } from '../../api/certificates.ts';
import { configMapType } from '../../api/core.ts';
import { kinds, places } from '../../api/group.ts';
import { KfError } from '../../errors.ts';
import type { Session } from '../../session/session.ts';

export interface AuthorityCertificate {
  /** PEM. */
  certificate: string;
  subject: string;
  /** SHA-256, as browsers show it. */
  fingerprint: string;
  notAfter: string;
  /** Domains whose certificate another authority has signed. */
  otherDomains: string[];
}

/** Domains with a certificate of cert-manager. */
async function issuedDomains({ cluster, root, signal }: Session): Promise<string[]> {
  const { items } = await cluster.list(kinds.domain, { ns: root, signal });
  return items.filter(isIssued).map(({ spec }) => spec.name);
}

/** @throws KfError `not-found` when the installation has no certificates of kf, or its controller has not made one yet */
export async function authorityCertificate(session: Session): Promise<AuthorityCertificate> {
  const { cluster, root, bin, signal } = session;
  const { https, name, namespace } = (await session.info()).gateway;
  if (https === undefined)
    throw new KfError('not-found', 'This installation has no certificates of kf: its operator switched https off, or runs its Gateway.', {
      hints: [`kubectl get gateway -n ${namespace} ${name} -o yaml`],
    });
  const published = await cluster.get(configMapType, root, places.authorityCertificate, signal);
  const certificate = published?.data?.[certificateFields.authority];
  if (certificate === undefined)
    throw new KfError('not-found', "The controller has not made the certificate of the gateway's authority yet.", {
      hints: [`kubectl -n ${places.systemNamespace} get deployment ${places.controllerAccount}`, `${bin} setup`],
    });
  const { subject, fingerprint256, validToDate } = new X509Certificate(certificate);
  return {
    certificate,
    subject,
    fingerprint: fingerprint256,
    notAfter: validToDate.toISOString(),
    otherDomains: [...https.secrets.map(({ domain }) => domain), ...(https.issuer === undefined ? [] : await issuedDomains(session))],
  };
}
