// ConfigMap `cf/kf-info`: the description of an installation for its CLIs (docs/internals.md).

import { KfError, messageOf } from '../errors.ts';

/** The format that this version of CLI and controller writes and reads. */
const infoFormat = 1;

/** The oldest controller that this CLI supports. */
const oldestController = '0.1.0';

/** The time that an app has to stop by itself after the drain, as in cf. */
export const defaultGraceSeconds = 10;

export interface KfInfo {
  format: number;
  oldestCli: string;
  controller: { version: string; namespace: string };
  /** `spaceQuotaBytes`: limit for the images of one space in the in-cluster registry; left out: no limit. */
  registry: { namespace: string; service: string; port: number; pushHost: string; pullPrefix: string; spaceQuotaBytes?: number };
  builder: {
    name: string;
    image: string;
    runImage?: string;
    insecureRegistries?: string[];
    /** Changes with the environment that setup gives every build. The variables may contain credentials, so only the controller reads them. */
    envRevision?: string;
    /** In 0.1.0 in place of a revision. */
    env?: Record<string, string>;
    digest?: string;
  };
  defaultDomain: string;
  gateway: {
    namespace: string;
    name: string;
    features: string[];
    internalAddress?: string;
    externalUrl?: { scheme: 'http' | 'https'; port: number; address?: string };
    /** Left out: kf does not manage the gateway's certificates, or the gateway has none. */
    https?: HttpsSettings;
  };
  /** Image for kf's own programs in the cluster (source container). */
  programImage?: string;
  /** Org and space that setup created. */
  defaults?: { org: { name: string; guid?: string }; space: { name: string; guid?: string } };
  drainSeconds: number;
  /** How long a stopping instance may take after SIGTERM; left out: {@link defaultGraceSeconds}. */
  graceSeconds?: number;
  processDefaults: { memoryMB: number; diskQuotaMB: number };
  /** Limits that override or extend the defaults in the ResourceQuotas of orgs, of spaces, and of all spaces of an org together. */
  limits?: { org?: Record<string, string>; space?: Record<string, string>; orgTotal?: Record<string, string> };
  /** How many finished tasks of an app are kept; default: the controller's. */
  tasksKeptPerApp?: number;
  staging: { memoryMB: number; diskMB: number };
  root: string;
  /** Left out when kf creates no NetworkPolicies. */
  network?: NetworkSettings;
}

export interface HttpsSettings {
  /** Port for https, as seen from outside. */
  port: number;
  /** Requests with http are redirected. */
  redirect?: true;
  /** Where the controller sees the certificates; left out when it cannot. */
  internalAddress?: string;
  /** Domains whose certificate the operator gives, with its Secret. The controller makes one certificate for all others. */
  secrets: { domain: string; namespace: string; name: string }[];
  /** Of cert-manager, for the certificates of all domains without such a Secret. Left out: the controller makes them. */
  issuer?: TlsIssuer;
}

/** An Issuer of cert-manager, or a ClusterIssuer, which has no namespace. */
export interface TlsIssuer {
  namespace?: string;
  name: string;
}

/** The input of the spaces' NetworkPolicies. */
export interface NetworkSettings {
  /** The result of setup's test, whether the cluster's network enforces policies; left out while it is unknown. */
  enforced?: boolean;
  /** Ranges (CIDR) and names of namespaces to which apps may connect, in addition to their own space and the internet. */
  egress: string[];
  /** Those from which apps accept connections, in addition to their own space and the gateway. */
  ingress: string[];
  /** Addresses of the cluster's name service, in addition to its pods. */
  dns: string[];
  /** Addresses of the API server. */
  apiServer: string[];
  /** Whether the cluster's pods have IPv6 addresses. */
  ipv6: boolean;
}

const setupHint = ['kf setup'];
const installHint = ['Install the kf that set this cluster up, or a newer one.'];

/** Parses the ConfigMap's text. A newer format is rejected before its fields are read. */
export function parseKfInfo(text: string): KfInfo {
  let info: Partial<KfInfo> | null;
  try {
    info = JSON.parse(text) as Partial<KfInfo> | null;
  } catch (error) {
    throw new KfError('failed', `The installation's description (ConfigMap kf-info) is not valid JSON: ${messageOf(error)}.`, {
      hints: setupHint,
      cause: error,
    });
  }
  if (typeof info?.format !== 'number') {
    throw new KfError('failed', "The installation's description (ConfigMap kf-info) names no format.", { hints: setupHint });
  }
  if (info.format > infoFormat) {
    throw new KfError(
      'conflict',
      `This kf is too old for the cluster: it knows format ${infoFormat} of kf-info, the cluster has ${info.format}.`,
      {
        hints: installHint,
      },
    );
  }
  const required = ['controller', 'registry', 'builder', 'defaultDomain', 'gateway', 'processDefaults', 'staging'] as const;
  const lacking = required.filter((key) => info[key] === undefined);
  if (lacking.length > 0) {
    throw new KfError('failed', `The installation's description (ConfigMap kf-info) does not contain ${lacking.join(', ')}.`, {
      hints: setupHint,
    });
  }
  return { oldestCli: '0.0.0', drainSeconds: 4, root: 'cf', ...info } as KfInfo;
}

function numbers(version: string): number[] {
  return (version.replace(/^v/, '').split(/[-+]/)[0] ?? '').split('.').map(Number);
}

/** Negative, 0 or positive, as for sort; pre-release parts are ignored. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbers(a), numbers(b)];
  for (let index = 0; index < 3; index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** CLI and controller may be this many releases apart (docs/compatibility.md). */
const mostReleasesApart = 1;

/** How many releases `a` is ahead of `b`: 1 for 0.4.x and 0.3.x. Undefined between major versions, where numbers do not tell it. */
export function releasesAhead(a: string, b: string): number | undefined {
  const [left, right] = [numbers(a), numbers(b)];
  return left[0] === right[0] ? (left[1] ?? 0) - (right[1] ?? 0) : undefined;
}

/** The first version of the release before; of a major version's first release, that release. */
export function releaseBefore(version: string): string {
  const [major = 0, minor = 0] = numbers(version);
  return `${major}.${Math.max(0, minor - mostReleasesApart)}.0`;
}

/** Throws when this kf would set up a version of the cluster that is too far before the present one; call it before the first write. */
export function requireSafeDowngrade({ controller }: KfInfo, cliVersion: string): void {
  if ((releasesAhead(controller.version, cliVersion) ?? 0) <= mostReleasesApart) return;
  throw new KfError(
    'conflict',
    `The cluster has kf ${controller.version}; setup can go back by one release at a time, not to ${cliVersion}.`,
    {
      hints: installHint,
    },
  );
}

/** Throws when the versions of CLI and controller do not fit together; call it before the first write. */
export function requireCompatible(info: KfInfo, cliVersion: string): void {
  const ahead = releasesAhead(cliVersion, info.controller.version) ?? 0;
  if (Math.abs(ahead) > mostReleasesApart) {
    const [older, hints] =
      ahead < 0
        ? ([`This kf (${cliVersion}) is too old for the cluster's controller (${info.controller.version})`, installHint] as const)
        : ([`The cluster's controller (${info.controller.version}) is too old for this kf (${cliVersion})`, setupHint] as const);
    throw new KfError('conflict', `${older}: they may be one release apart.`, { hints });
  }
  if (compareVersions(cliVersion, info.oldestCli) < 0) {
    throw new KfError(
      'conflict',
      `This kf (${cliVersion}) is too old for the cluster, whose controller is ${info.controller.version}; it needs ${info.oldestCli} or newer.`,
      {
        hints: installHint,
      },
    );
  }
  if (compareVersions(info.controller.version, oldestController) < 0) {
    throw new KfError(
      'conflict',
      `The cluster's controller (${info.controller.version}) is too old for this kf (${cliVersion}), which needs ${oldestController} or newer.`,
      {
        hints: setupHint,
      },
    );
  }
}
