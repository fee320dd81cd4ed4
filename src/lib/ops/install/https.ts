// The settings of https: the operator's keys and flags, resolved to what the gateway gets.

import type { HttpsSettings, TlsIssuer } from '../../api/kf-info.ts';
import { incorrectUsage } from '../../cf/usage.ts';
import { defined } from '../../defined.ts';

/** Keys of `setup.yaml`, and flags. */
export interface HttpsRequest {
  https?: string;
  httpsPort?: number;
  httpRedirect?: string;
  /** Secret with the certificate of the default domain, as NAMESPACE/NAME. */
  tlsSecret?: string;
  /** Secrets with the certificates of other domains. */
  tlsSecrets?: Record<string, string>;
  /** Issuer of cert-manager for all other domains: NAMESPACE/NAME, or the NAME of a ClusterIssuer, or `off`. */
  tlsIssuer?: string;
}

export const standardHttps = { https: 'on', httpsPort: 443, httpRedirect: 'off' } satisfies HttpsRequest;

/** The keys that have no effect while https is off. */
export const httpsKeys = ['httpsPort', 'httpRedirect', 'tlsSecret', 'tlsSecrets', 'tlsIssuer'] as const;

/** A Gateway can have 64 listeners, and kf uses up to three for itself. */
const mostSecrets = 60;

/** True for a DNS name in lower case. */
export const isDomain = (text: string): boolean => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text);

/** True for NAMESPACE/NAME. */
export const isSecretReference = (text: string): boolean => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text);

/** The value of `tlsIssuer` for certificates of kf. */
export const noIssuer = 'off';

/** True for NAME and NAMESPACE/NAME. */
export const isIssuerReference = (text: string): boolean => /^([a-z0-9]([-a-z0-9]*[a-z0-9])?\/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text);

function splitIssuer(reference: string | undefined): TlsIssuer | undefined {
  if (reference === undefined || reference === noIssuer) return undefined;
  if (!isIssuerReference(reference))
    throw incorrectUsage(`--tls-issuer takes the NAME of a ClusterIssuer, NAMESPACE/NAME of an Issuer, or off, not '${reference}'.`);
  const [name = '', namespace] = reference.split('/').toReversed();
  return { name, ...defined({ namespace }) };
}

function splitSecret(domain: string, reference: string): HttpsSettings['secrets'][number] {
  if (!isSecretReference(reference)) throw incorrectUsage(`--tls-secret takes NAMESPACE/NAME, not '${reference}'.`);
  const [namespace = '', name = ''] = reference.split('/');
  return { domain, namespace, name };
}

function secretsIn({ tlsSecret, tlsSecrets = {} }: HttpsRequest, defaultDomain: string): HttpsSettings['secrets'] {
  const wrong = Object.keys(tlsSecrets).find((domain) => !isDomain(domain));
  if (wrong !== undefined)
    throw incorrectUsage(`The key 'tlsSecrets' names domains in lower case, such as apps.example.com, not '${wrong}'.`);
  if (tlsSecret !== undefined && tlsSecrets[defaultDomain] !== undefined)
    throw incorrectUsage(`The domain '${defaultDomain}' has two Secrets: in 'tlsSecret' and in 'tlsSecrets'.`);
  const all = { ...(tlsSecret === undefined ? {} : { [defaultDomain]: tlsSecret }), ...tlsSecrets };
  const domains = Object.keys(all).sort();
  if (domains.length > mostSecrets)
    throw incorrectUsage(`kf takes Secrets for at most ${mostSecrets} domains, and there are ${domains.length}.`);
  return domains.map((domain) => splitSecret(domain, all[domain] ?? ''));
}

/**
 * @param request with the keys of the gateway too
 * @returns undefined when https is off, and for a Gateway of the operator, whose listeners kf does not change
 * @throws KfError usage for settings without an effect
 */
export function resolveHttps(
  request: HttpsRequest & { gateway?: string; gatewayClass?: string },
  defaultDomain: string,
): HttpsSettings | undefined {
  const given = [...(request.https === 'on' ? ['https'] : []), ...httpsKeys].filter(
    (key) => request[key as keyof HttpsRequest] !== undefined,
  );
  const foreign =
    request.gateway === undefined ? undefined : `the Gateway '${request.gateway}' is yours, and kf does not change its listeners`;
  const off = request.https === 'off' ? 'https is off' : undefined;
  if ((foreign ?? off) !== undefined) {
    if (given[0] !== undefined) throw incorrectUsage(`'${given.join("', '")}' would have no effect: ${foreign ?? off ?? ''}.`);
    return undefined;
  }
  const isRedirected = (request.httpRedirect ?? standardHttps.httpRedirect) === 'on';
  if (isRedirected && request.gatewayClass !== undefined)
    throw incorrectUsage("'httpRedirect' needs the gateway that kf installs, and 'gatewayClass' names another one.");
  return {
    port: request.httpsPort ?? standardHttps.httpsPort,
    ...(isRedirected ? ({ redirect: true } as const) : {}),
    secrets: secretsIn(request, defaultDomain),
    ...defined({ issuer: splitIssuer(request.tlsIssuer) }),
  };
}
