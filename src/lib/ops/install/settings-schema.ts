// The schema of setup.yaml: every key with its kind of value. docs/setup.md lists the keys, and a test compares both.

import type { SetupImages } from '../../../templates/setup/options.ts';
import { isDomain, isIssuerReference, isSecretReference, type HttpsRequest } from './https.ts';
import { isPeer, type NetworkRequest } from './network.ts';

/** Flags of the command, and the keys of `setup.yaml`. */
export interface SetupRequest extends NetworkRequest, HttpsRequest {
  domain?: string;
  registry?: string;
  insecureRegistry?: boolean;
  gateway?: string;
  gatewayClass?: string;
  gatewayExposure?: 'auto' | 'hostport' | 'loadbalancer';
  gatewayPort?: number;
  gatewayAddress?: string;
  /** `on` or `off`. */
  gatewayGuard?: string | boolean;
  imagePrefix?: string;
  images?: Partial<SetupImages>;
  controllerImage?: string;
  nodePort?: number;
  registrySize?: string;
  registrySpaceQuotaMB?: number;
  storageClass?: string;
  insecureRegistries?: string[];
  buildEnv?: Record<string, string>;
  drainSeconds?: number;
  graceSeconds?: number;
  staging?: { memoryMB?: number; diskMB?: number };
  processDefaults?: { memoryMB?: number; diskQuotaMB?: number };
  /** Added to the defaults of src/templates/limits.ts, or in place of them; empty: none. */
  limits?: Partial<Record<'org' | 'space' | 'orgTotal', Record<string, string | number>>>;
  tasksKeptPerApp?: number;
  controllerMemoryMB?: number;
  org?: string;
  space?: string;
}

/** A kind of value. `what` ends a sentence that begins with the key: "is a port, from 1 to 65535,". */
export type Rule =
  | { type: 'text'; what?: string; matches?: { test: (text: string) => boolean } }
  | { type: 'boolean' }
  | { type: 'number'; least: number; most?: number; what: string }
  | { type: 'choice'; of: readonly string[] }
  /** `on` and `off`, also as YAML's truth values. */
  | { type: 'switch' }
  /** A Kubernetes quantity; a number stays a number. */
  | { type: 'quantity'; mayBeEmpty?: boolean }
  /** A list, or a single entry. */
  | { type: 'list'; of: Rule }
  | { type: 'map'; keys: Readonly<Record<string, Rule>> }
  /** Any keys, or those that match. */
  | { type: 'record'; of: Rule; names?: { what: string; matches: { test: (name: string) => boolean } } };

const text: Rule = { type: 'text' };
const port: Rule = { type: 'number', least: 1, most: 65_535, what: 'is a port, from 1 to 65535,' };
const from = (least: number): Rule => ({ type: 'number', least, what: `is a whole number from ${least}` });
const peers: Rule = {
  type: 'list',
  of: { type: 'text', what: 'takes ranges (10.20.0.0/16) and names of namespaces,', matches: { test: isPeer } },
};
const secret: Rule = { type: 'text', what: 'is the NAMESPACE/NAME of a Secret,', matches: { test: isSecretReference } };
const quantities: Rule = { type: 'record', of: { type: 'quantity', mayBeEmpty: true } };

/** In the order of the keys in the record of an installation. */
export const settingsSchema: Readonly<Record<keyof SetupRequest, Rule>> = {
  domain: {
    type: 'text',
    what: 'is a DNS name in lower case, such as apps.example.com,',
    matches: { test: isDomain },
  },
  registry: { type: 'text', what: 'is HOST/PREFIX,', matches: /^[^/\s]+(\/\S*)?$/ },
  insecureRegistry: { type: 'boolean' },
  gateway: { type: 'text', what: 'is NAMESPACE/NAME,', matches: /^[^/\s]+\/[^/\s]+$/ },
  gatewayClass: text,
  gatewayExposure: { type: 'choice', of: ['auto', 'hostport', 'loadbalancer'] },
  gatewayPort: port,
  gatewayAddress: text,
  gatewayGuard: { type: 'switch' },
  https: { type: 'switch' },
  httpsPort: port,
  httpRedirect: { type: 'switch' },
  tlsSecret: secret,
  tlsSecrets: {
    type: 'record',
    of: secret,
    names: { what: 'names domains in lower case, such as apps.example.com,', matches: { test: isDomain } },
  },
  tlsIssuer: {
    type: 'text',
    what: 'is the NAME of a ClusterIssuer, NAMESPACE/NAME of an Issuer, or off,',
    matches: { test: isIssuerReference },
  },
  imagePrefix: text,
  images: { type: 'map', keys: { node: text, registry: text, traefik: text, builder: text, run: text } },
  controllerImage: text,
  nodePort: port,
  registrySize: { type: 'quantity' },
  registrySpaceQuotaMB: from(0),
  storageClass: text,
  insecureRegistries: { type: 'list', of: text },
  buildEnv: { type: 'record', of: text },
  networkPolicies: { type: 'switch' },
  appEgress: peers,
  appIngress: peers,
  drainSeconds: from(0),
  graceSeconds: from(0),
  staging: { type: 'map', keys: { memoryMB: from(1), diskMB: from(1) } },
  processDefaults: { type: 'map', keys: { memoryMB: from(1), diskQuotaMB: from(1) } },
  limits: { type: 'map', keys: { org: quantities, space: quantities, orgTotal: quantities } },
  tasksKeptPerApp: from(1),
  controllerMemoryMB: from(1),
  org: text,
  space: text,
};

/** Keys of `setup.yaml`. */
export const knownKeys = Object.keys(settingsSchema) as (keyof SetupRequest)[];
