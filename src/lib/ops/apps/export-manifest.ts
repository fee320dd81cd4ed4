// `create-app-manifest`: writes the settings of an app to a file that `push -f` reads.

import { writeFile } from 'node:fs/promises';
import { processesOf, routesOf } from '../../api/app.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { addressOf } from '../../api/names.ts';
import { defined } from '../../defined.ts';
import { KfError, messageOf } from '../../errors.ts';
import { manifestText } from '../../manifest/write.ts';
import type { SpaceSession } from '../../session/session.ts';
import { imageUser } from '../builds/image-credentials.ts';
import { listDomainObjects } from '../find.ts';
import { leadsTo, protocolOf } from '../routes/destinations.ts';
import { isLive } from '../routes/holders.ts';
import { appBindings, isRefusedBinding } from '../services/user-provided.ts';
import { readDroplet } from './details.ts';
import { readVariables } from './env.ts';

async function boundServices(session: SpaceSession, app: Stored<CFApp>): Promise<{ name: string; bindingName?: string }[]> {
  // Not those of the app's status: it lists none as long as one of them is not ready.
  const bindings = (await appBindings(session, app)).filter((binding) => !isRefusedBinding(binding));
  if (bindings.length === 0) return [];
  const { items } = await session.cluster.list(kinds.serviceInstance, { ns: session.space.guid, signal: session.signal });
  const names = new Map(items.map(({ metadata, spec }) => [metadata.name, spec.displayName]));
  return bindings.flatMap(({ metadata, spec: { service, displayName } }) => {
    const name = names.get(service.name ?? '');
    if (name === undefined || metadata.deletionTimestamp !== undefined) return [];
    return [{ name, ...defined({ bindingName: displayName === '' ? undefined : displayName }) }];
  });
}

/** The image as the user pushed it, with the user of its registry. */
async function imageOf(session: SpaceSession, app: Stored<CFApp>): Promise<{ image: string; username?: string } | undefined> {
  const { build, image } = await readDroplet(session, app, {});
  if (image === undefined) return undefined;
  const [secret] = build?.status?.droplet?.registry.imagePullSecrets ?? [];
  return { image, ...defined({ username: secret && (await imageUser(session, secret.name, image)) }) };
}

interface Address {
  route: Stored<CFRoute>;
  address: string;
}

/** The addresses of routes, also of those to which no controller has written one. */
async function addressesOf(session: SpaceSession, routes: readonly Stored<CFRoute>[]): Promise<Address[]> {
  const isTold = routes.every(({ status }) => status?.uri !== undefined);
  const domains = isTold ? [] : await listDomainObjects(session);
  return routes.flatMap((route) => {
    const domain = domains.find(({ metadata }) => metadata.name === route.spec.domainRef.name);
    const address = route.status?.uri ?? (domain && addressOf(route, domain).uri);
    return address === undefined ? [] : [{ route, address }];
  });
}

/** The manifest of the app, as text. @throws KfError `forbidden` for a user who may not see the environment */
export async function appManifest(session: SpaceSession, app: Stored<CFApp>): Promise<string> {
  const { cluster, space, signal } = session;
  const options = { ns: space.guid, signal };
  const [processes, routes, env, services, docker] = await Promise.all([
    cluster.list(kinds.process, { ...options, labelSelector: `${labels.appGuid}=${app.metadata.name}` }),
    cluster.list(kinds.route, options),
    readVariables(session, app),
    boundServices(session, app),
    imageOf(session, app),
  ]);
  const own = routesOf(app, routes.items).filter(isLive);
  return manifestText({
    app,
    processes: processesOf(app, processes.items),
    env: Object.fromEntries(Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    services,
    routes: (await addressesOf(session, own)).map(({ address, route: { spec } }) => {
      const destination = (spec.destinations ?? []).find((one) => leadsTo(one, app));
      const protocol = destination === undefined ? 'http1' : protocolOf(destination);
      return { address, protocol: spec.protocol === 'tcp' ? 'tcp' : protocol };
    }),
    ...defined({ docker }),
  });
}

/** Writes the manifest; only its owner may read it, because variables are often secret. @throws KfError `failed` */
export async function writeManifest(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { mode: 0o600 });
  } catch (error) {
    throw new KfError('failed', `Error creating file: ${messageOf(error)}`, { hints: ['Name another file with -p PATH.'], cause: error });
  }
}
