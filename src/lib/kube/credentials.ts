// The sources of a user's credentials and their renewal: fixed values, token files, exec plugins, legacy auth providers.

import { pemOf, readCredentialFile, sameCredential } from './credential.ts';
import type { Credential, CredentialSource } from './credential.ts';
import type { SelectedContext, UserEntry } from './kubeconfig.ts';
import { defined } from '../defined.ts';

const tokenFileMaxAgeMs = 10_000;

/** A credential that never changes. */
export function fixedCredential(credential: Credential): CredentialSource {
  return { get: () => Promise.resolve(credential), renew: () => Promise.resolve(false) };
}

/** A bearer token in a file that another program renews (projected service account tokens). */
export function tokenFileCredential(path: string, fallback: Credential = {}, now: () => number = Date.now): CredentialSource {
  let current: Credential | undefined;
  let readAt = 0;
  const read = (): Credential => {
    const token = readCredentialFile(path, 'token file').trim();
    readAt = now();
    current = token === '' ? fallback : { ...fallback, authorization: `Bearer ${token}` };
    return current;
  };
  return {
    async get() {
      if (current !== undefined && now() - readAt < tokenFileMaxAgeMs) return current;
      try {
        return read();
      } catch (error) {
        // The file is being replaced; the last token may still be valid.
        if (current !== undefined) return current;
        throw error;
      }
    },
    async renew(refused) {
      return !sameCredential(read(), refused);
    },
  };
}

function clientCertificate(user: UserEntry): Credential {
  const cert = pemOf(user['client-certificate-data'], user['client-certificate'], 'client certificate');
  const key = pemOf(user['client-key-data'], user['client-key'], 'client key');
  return { ...defined({ cert, key }) };
}

/** The source for the user of a context, in kubectl's order: token file, token, password, exec plugin, auth provider, only a certificate. */
export async function credentialSourceOf(
  selected: SelectedContext,
  env: Readonly<Record<string, string | undefined>>,
): Promise<CredentialSource> {
  const { user } = selected;
  const certificate = clientCertificate(user);
  if (user.tokenFile !== undefined) return tokenFileCredential(user.tokenFile, certificate);
  if (user.token !== undefined && user.token !== '') return fixedCredential({ ...certificate, authorization: `Bearer ${user.token}` });
  if (user.username !== undefined && user.username !== '') {
    const pair = Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64');
    return fixedCredential({ ...certificate, authorization: `Basic ${pair}` });
  }
  if (user.exec !== undefined) return (await import('./exec-credential.ts')).execCredential(user.exec, selected, env);
  if (user['auth-provider'] !== undefined) return (await import('./auth-provider.ts')).authProviderCredential(selected);
  return fixedCredential(certificate);
}
