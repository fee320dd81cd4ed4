// The kinds of cert-manager, reduced to the fields that kf writes or reads, and the certificates that it makes for the domains (decision 74).
// Source: https://cert-manager.io/docs/reference/api-docs/

import { findCondition } from './conditions.ts';
import { conditionTypes } from './group.ts';
import type { TlsIssuer } from './kf-info.ts';
import { resource, type Condition, type KubeObject, type Stored } from './object.ts';
import type { CFDomain } from './types.generated.ts';

export const certManagerGroup = 'cert-manager.io';

export interface IssuerReference {
  group: string;
  kind: 'ClusterIssuer' | 'Issuer';
  name: string;
}

export interface Certificate extends KubeObject {
  spec: { secretName: string; dnsNames: string[]; issuerRef: IssuerReference; usages: string[] };
  status?: { conditions?: Condition[]; notAfter?: string };
}

export const certificateType = resource<Certificate>(certManagerGroup, 'v1', 'Certificate', 'certificates');
const issuerType = resource(certManagerGroup, 'v1', 'Issuer', 'issuers');
const clusterIssuerType = resource(certManagerGroup, 'v1', 'ClusterIssuer', 'clusterissuers', false);

/** The kind of an issuer: one without a namespace serves the whole cluster. */
export const issuerTypeOf = ({ namespace }: TlsIssuer) => (namespace === undefined ? clusterIssuerType : issuerType);

export const issuerReference = (issuer: TlsIssuer): IssuerReference => ({
  group: certManagerGroup,
  kind: issuer.namespace === undefined ? 'ClusterIssuer' : 'Issuer',
  name: issuer.name,
});

/** How the names of these Certificates and of their Secrets begin; a policy lets the controller use no other Secret. */
export const issuedPrefix = 'kf-domain-';

/** The name of a domain's Certificate, and of its Secret. */
export const issuedName = ({ metadata }: Stored<CFDomain>): string => `${issuedPrefix}${metadata.name}`;

/** What is wrong with the Certificate of a domain; undefined when the gateway shows it, and when the domain has none. */
export function issueProblem(domain: CFDomain): string | undefined {
  const condition = findCondition(domain, conditionTypes.certificateIssued);
  return condition?.status === 'False' ? condition.message : undefined;
}

/** True when the gateway has a listener with the domain's own certificate of cert-manager. */
export function isIssued(domain: CFDomain): boolean {
  return findCondition(domain, conditionTypes.certificateIssued)?.status === 'True';
}
