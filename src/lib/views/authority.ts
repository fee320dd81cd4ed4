// `ca-certificate`.

import { line, type Block } from './block.ts';

export interface AuthorityView {
  /** PEM. */
  certificate: string;
  /** Domains with a certificate of the operator's. */
  otherDomains: string[];
}

/** The certificate and nothing else, so that it can be sent to a file. */
export function renderAuthority({ certificate }: AuthorityView): Block[] {
  return certificate.trimEnd().split('\n').map(line);
}

/** What a user must know who trusts this authority; empty when it signs for all domains. */
export function otherAuthorities({ otherDomains }: AuthorityView): string[] {
  if (otherDomains.length === 0) return [];
  return [`Certificates of the operator, which this authority has not signed: ${otherDomains.join(', ')}`];
}
