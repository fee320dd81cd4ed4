// Reads the settings of an installation without a record from its objects. Default values are left out, so that later defaults apply.

import { deploymentType, type Deployment } from '../../api/core.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { KubeObject, ResourceType } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { controllerName } from '../../../templates/setup/controller.ts';
import { gatewayName, traefikName, unguarded } from '../../../templates/setup/gateway.ts';
import { nodeNamespace, systemNamespace, type SetupImages } from '../../../templates/setup/options.ts';
import { registryName } from '../../../templates/setup/registry.ts';
import { kindNamed } from './kinds.ts';
import { getIfAny } from './present.ts';
import type { RecordedInfo } from './recorded-info.ts';
import { isLoopbackDomain, standard, withPrefix, type SetupRequest } from './request.ts';

interface Claim extends KubeObject {
  spec?: { storageClassName?: string; resources?: { requests?: { storage?: string } } };
}

interface GatewayOfClass extends KubeObject {
  spec?: { gatewayClassName?: string };
}

/** The objects that show settings; undefined: the object does not exist. */
interface Found {
  info: KfInfo | undefined;
  registry: Deployment | undefined;
  controller: Deployment | undefined;
  traefik: Deployment | undefined;
  claim: Claim | undefined;
  gateway: GatewayOfClass | undefined;
}

async function findObjects(cluster: Cluster, info: KfInfo | undefined): Promise<Found> {
  const deployment = (ns: string, name: string): Promise<Deployment | undefined> => cluster.get(deploymentType, ns, name);
  const [registry, controller, onNodes, balanced, claim, gateway] = await Promise.all([
    deployment(systemNamespace, registryName),
    deployment(systemNamespace, controllerName),
    deployment(nodeNamespace, traefikName),
    deployment(systemNamespace, traefikName),
    getIfAny(cluster, kindNamed('PersistentVolumeClaim') as ResourceType<Claim>, systemNamespace, registryName),
    getIfAny(cluster, kindNamed('Gateway') as ResourceType<GatewayOfClass>, systemNamespace, gatewayName),
  ]);
  return { info, registry, controller, traefik: onNodes ?? balanced, claim, gateway };
}

const hasOwnRegistry = ({ registry }: KfInfo): boolean => registry.pushHost.startsWith(`${registryName}.${systemNamespace}.svc:`);
const hasOwnGateway = ({ gateway }: KfInfo): boolean => gateway.internalAddress !== undefined;
/** 0.1.0 had no limits, no quota of a space in the registry and no policies, so its objects say nothing about them. */
const isOfFirstVersion = ({ limits }: KfInfo): boolean => limits === undefined;

function containerOf(deployment: Deployment | undefined, name: string): { image?: string; memory?: string } {
  const container = deployment?.spec?.template.spec?.containers.find((one) => one.name === name);
  const memory = container?.resources?.limits?.['memory'];
  return defined({ image: container?.image, memory: memory?.toString() });
}

/** The images, or the mirror that several of them come from. */
function imagesOf({ info, registry, controller, traefik }: Found): Pick<SetupRequest, 'images' | 'imagePrefix'> {
  const node = info?.programImage ?? containerOf(controller, 'controller').image ?? containerOf(registry, 'gate').image;
  const all: Partial<Record<keyof SetupImages, string | undefined>> = {
    node,
    registry: containerOf(registry, 'registry').image,
    traefik: containerOf(traefik, 'traefik').image,
    builder: info?.builder.image,
    run: info?.builder.runImage,
  };
  const names = Object.keys(all) as (keyof SetupImages)[];
  const given = names.filter((name) => all[name] !== undefined && all[name] !== standard.images[name]);
  const prefixes = given.flatMap((name) => {
    const suffix = withPrefix('', standard.images[name]);
    return all[name]?.endsWith(suffix) === true ? [all[name].slice(0, -suffix.length)] : [];
  });
  const prefix = prefixes.find((one) => prefixes.filter((other) => other === one).length > 1);
  const isMirrored = (name: keyof SetupImages): boolean => prefix !== undefined && all[name] === withPrefix(prefix, standard.images[name]);
  // A prefix would also change the images that have their published names.
  const pinned = names.filter((name) => all[name] !== undefined && (prefix === undefined ? given.includes(name) : !isMirrored(name)));
  const images = Object.fromEntries(pinned.map((name) => [name, all[name]])) as Partial<SetupImages>;
  return { ...defined({ imagePrefix: prefix }), ...(pinned.length === 0 ? {} : { images }) };
}

function registryOf({ info, claim }: Found): SetupRequest {
  const storageClass = claim?.spec?.storageClassName;
  const registrySize = claim?.spec?.resources?.requests?.storage;
  const volume = defined({ storageClass, registrySize });
  if (info === undefined) return volume;
  const { pushHost, pullPrefix, spaceQuotaBytes } = info.registry;
  const plain = info.builder.insecureRegistries ?? [];
  if (!hasOwnRegistry(info)) {
    const insecureRegistries = plain.filter((host) => host !== pushHost);
    return { registry: pullPrefix.replace(/\/$/, ''), insecureRegistry: plain.includes(pushHost), insecureRegistries };
  }
  const shareMB = spaceQuotaBytes === undefined ? 0 : spaceQuotaBytes / (1024 * 1024);
  return {
    ...volume,
    nodePort: Number(/:(\d+)\/$/.exec(pullPrefix)?.[1] ?? standard.nodePort),
    insecureRegistries: plain,
    ...(isOfFirstVersion(info) ? {} : { registrySpaceQuotaMB: shareMB }),
  };
}

/** Of a gateway that setup made. kf 0.1.0 had no https; an update of it gets the default. */
function httpsOf(info: KfInfo): SetupRequest {
  const { https } = info.gateway;
  if (https === undefined) return isOfFirstVersion(info) ? {} : { https: 'off' };
  const tlsSecrets = Object.fromEntries(https.secrets.map(({ domain, namespace, name }) => [domain, `${namespace}/${name}`]));
  const { namespace, name } = https.issuer ?? {};
  const tlsIssuer = namespace === undefined ? name : `${namespace}/${name ?? ''}`;
  return { httpsPort: https.port, tlsSecrets, ...defined({ tlsIssuer }), ...(https.redirect === true ? { httpRedirect: 'on' } : {}) };
}

function gatewayOf(info: KfInfo, live: GatewayOfClass | undefined): SetupRequest {
  const { namespace, name, externalUrl } = info.gateway;
  const isObvious = isLoopbackDomain(info.defaultDomain) && externalUrl?.address === '127.0.0.1';
  const outside = {
    ...(externalUrl?.scheme === 'https' ? {} : { gatewayPort: externalUrl?.port ?? standard.gatewayPort }),
    ...(externalUrl?.address === undefined || isObvious ? {} : { gatewayAddress: externalUrl.address }),
  };
  if (hasOwnGateway(info))
    return { ...outside, ...httpsOf(info), gatewayExposure: namespace === nodeNamespace ? 'hostport' : 'loadbalancer' };
  const className = namespace === systemNamespace && name === gatewayName ? live?.spec?.gatewayClassName : undefined;
  return { ...outside, ...(className === undefined ? { gateway: `${namespace}/${name}` } : { ...httpsOf(info), gatewayClass: className }) };
}

function informed(info: KfInfo, live: GatewayOfClass | undefined): SetupRequest {
  const { org, space } = info.defaults ?? {};
  return {
    domain: info.defaultDomain,
    ...gatewayOf(info, live),
    ...defined({ buildEnv: info.builder.env }),
    ...(isOfFirstVersion(info) || info.network !== undefined ? {} : { networkPolicies: 'off' }),
    ...defined({ appEgress: info.network?.egress, appIngress: info.network?.ingress }),
    drainSeconds: info.drainSeconds,
    ...defined({ graceSeconds: info.graceSeconds }),
    staging: info.staging,
    processDefaults: info.processDefaults,
    ...defined({ tasksKeptPerApp: info.tasksKeptPerApp, limits: info.limits, org: org?.name, space: space?.name }),
  };
}

const isEmpty = (value: unknown): boolean =>
  value !== null && typeof value === 'object' && Object.values(value).every((one) => one === undefined || isEmpty(one));

function guardOf({ traefik }: Found): SetupRequest {
  const annotations = traefik?.spec?.template.metadata?.annotations ?? {};
  return Object.entries(unguarded).every(([key, value]) => annotations[key] === value) ? { gatewayGuard: 'off' } : {};
}

function withoutStandards(settings: SetupRequest): SetupRequest {
  const same = (key: string, value: unknown): boolean => JSON.stringify(value) === JSON.stringify(standard[key as keyof typeof standard]);
  return Object.fromEntries(Object.entries(settings).filter(([key, value]) => value !== undefined && !isEmpty(value) && !same(key, value)));
}

/** The objects with the images must exist: a wrong guess of an image would break a registry. */
function assertTold({ info, registry, traefik }: Found): void {
  if (info === undefined) return;
  const lacking = [
    ...(hasOwnRegistry(info) && registry === undefined ? [`Deployment ${systemNamespace}/${registryName}`] : []),
    ...(hasOwnGateway(info) && traefik === undefined ? [`Deployment ${info.gateway.namespace}/${traefikName}`] : []),
  ];
  if (lacking.length === 0) return;
  throw untold(`The object that names its images is missing: ${lacking.join(', ')}.`);
}

function untold(why: string): KfError {
  return new KfError('failed', `This installation has no record of its settings. ${why}`, { hints: ['kf setup -f setup.yaml'] });
}

/**
 * The settings of an installation without a record; undefined when there is no installation.
 * @throws KfError `failed` when its objects do not show them
 */
export async function settingsOfObjects(cluster: Cluster, recorded: RecordedInfo): Promise<SetupRequest | undefined> {
  if (recorded.fault !== undefined) throw untold(recorded.fault);
  const found = await findObjects(cluster, recorded.info);
  const { info, registry, controller } = found;
  if (info === undefined && registry === undefined && controller === undefined) return undefined;
  assertTold(found);
  const memory = /^(\d+)Mi$/.exec(containerOf(controller, 'controller').memory ?? '')?.[1];
  const isTold = memory !== undefined && info !== undefined && !isOfFirstVersion(info);
  return withoutStandards({
    ...imagesOf(found),
    ...registryOf(found),
    ...(isTold ? { controllerMemoryMB: Number(memory) } : {}),
    ...(info === undefined ? {} : informed(info, found.gateway)),
    ...guardOf(found),
  });
}
