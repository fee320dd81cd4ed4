// Credentials of users with a legacy `auth-provider` (oidc, gcp, azure); client-node can refresh those.

import { KfError, messageOf } from '../errors.ts';
import { sameCredential } from './credential.ts';
import type { Credential, CredentialSource } from './credential.ts';
import type { SelectedContext } from './kubeconfig.ts';

/** Throws KfError `forbidden` when the provider gives no token. */
export async function authProviderCredential({
  context,
  clusterName,
  userName,
  cluster,
  user,
}: SelectedContext): Promise<CredentialSource> {
  const { KubeConfig } = await import('./client-node.ts');
  const config = new KubeConfig();
  config.loadFromString(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': context,
      contexts: [{ name: context, context: { cluster: clusterName, user: userName } }],
      clusters: [{ name: clusterName, cluster }],
      users: [{ name: userName, user }],
    }),
  );
  const provided = config.getCurrentUser()?.authProvider?.config as Record<string, unknown> | undefined;
  const issuer = provided?.['idp-issuer-url'];
  // client-node 2.0.1 hands the issuer as text to openid-client, which takes a URL only.
  if (provided !== undefined && typeof issuer === 'string' && URL.canParse(issuer)) provided['idp-issuer-url'] = new URL(issuer);
  const ask = async (): Promise<Credential> => {
    const options: { headers?: Record<string, string | string[] | undefined> } = { headers: {} };
    try {
      await config.applyToHTTPSOptions(options);
    } catch (error) {
      throw new KfError(
        'forbidden',
        `The auth provider "${String(user['auth-provider']?.name)}" of the kubeconfig gave no token: ${messageOf(error)}.`,
        {
          cause: error,
        },
      );
    }
    const header = options.headers?.['Authorization'];
    return typeof header === 'string' ? { authorization: header } : {};
  };
  return {
    get: ask,
    async renew(refused) {
      return !sameCredential(await ask(), refused);
    },
  };
}
