// The environment of an app's container: the variables of Korifi and of cf.

import type { EnvVar } from '../lib/api/types.generated.ts';

/** The fields of VCAP_APPLICATION for every instance of a process. */
export interface VcapApplication {
  [key: string]: unknown;
  application_id: string;
  application_name: string;
}

/** The fields of VCAP_SERVICES per service. The keys are the contract's. */
export interface VcapService {
  label: string;
  name: string;
  tags: string[];
  instance_guid: string;
  instance_name: string;
  binding_guid: string;
  binding_name: string | null;
  credentials: Record<string, unknown>;
  syslog_drain_url: string | null;
  volume_mounts: unknown[];
  plan?: string;
  provider?: string | null;
}

/** The port of an app that names none. */
export const defaultPort = 8080;

/** Keys of the frozen Secret that are not the user's variables. */
export const vcapServicesKey = 'VCAP_SERVICES';
export const databaseUrlKey = 'DATABASE_URL';

export interface ProcessEnvInput {
  /** The user's variables and VCAP_SERVICES: keys of the generation's frozen Secret. */
  secretName: string;
  secretKeys: readonly string[];
  vcapApplication: VcapApplication;
  memoryMB: number;
  /** Empty for a process that no route leads to. Its variables name the port where it would have to listen, as in cf. */
  ports: readonly number[];
  lifecycle: 'buildpack' | 'docker';
}

/** Escapes `$`, because the kubelet expands variables in plain values. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$');
}

/** A name that a variable of an app can have. */
const variableName = /^[A-Za-z_.-][\w.-]*$/;

/**
 * A command as the kubelet has to get it, so that the shell gets what the user wrote: the kubelet turns `$$` into `$` and replaces `$(NAME)` by the
 * variable. A text without these stays as it is, and so does `$(a program)`, within which the kubelet changes nothing
 * (https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/).
 */
export function literalCommand(text: string): string {
  return text.replace(/\$\$|\$\(([^)]*)\)/g, (found: string, name?: string) => {
    if (name === undefined) return found + found;
    return variableName.test(name) ? `$${found}` : found;
  });
}

/** VCAP_APPLICATION with the fields that only the running instance knows; the kubelet expands them from variables defined before. */
function vcapApplicationValue(application: VcapApplication, port: number): string {
  const text = JSON.stringify({ ...application, host: '0.0.0.0', port });
  const open = literal(text).slice(0, -1);
  return `${open},"instance_id":"$(CF_INSTANCE_GUID)","instance_index":$(CF_INSTANCE_INDEX)}`;
}

/**
 * A docker image keeps its own home and user; a buildpack app gets the same values as in cf, for the paths of a CNB image.
 * @param chosen names that the user has set
 */
export function buildHomeEnv(lifecycle: 'buildpack' | 'docker', chosen: readonly string[]): EnvVar[] {
  const home = [
    { name: 'HOME', value: '/workspace' },
    { name: 'TMPDIR', value: '/tmp' },
    { name: 'USER', value: 'vcap' },
    { name: 'LANG', value: 'en_US.UTF-8' },
  ];
  return (lifecycle === 'buildpack' ? home : home.slice(1, 2)).filter(({ name }) => !chosen.includes(name));
}

/** Variables of AppWorkload.spec.env: the user's first, so that the platform's override those of the same name. */
export function buildProcessEnv(input: ProcessEnvInput): EnvVar[] {
  const [port = defaultPort] = input.ports;
  const platform: EnvVar[] = [
    { name: 'MEMORY_LIMIT', value: `${String(input.memoryMB)}m` },
    { name: 'VCAP_APP_HOST', value: '0.0.0.0' },
    ...['PORT', 'VCAP_APP_PORT'].map((name) => ({ name, value: String(port) })),
    ...(input.ports.length === 0 ? instancePortEnv(port) : []),
    { name: 'VCAP_APPLICATION', value: vcapApplicationValue(input.vcapApplication, port) },
  ];
  const taken = new Set(platform.map((variable) => variable.name));
  const fromSecret = input.secretKeys
    .filter((key) => !taken.has(key))
    .map((key): EnvVar => ({ name: key, valueFrom: { secretKeyRef: { name: input.secretName, key } } }));
  return [...buildHomeEnv(input.lifecycle, input.secretKeys), ...fromSecret, ...platform];
}

/** What an instance knows of its port. */
const instancePortEnv = (port: number): EnvVar[] => [
  { name: 'CF_INSTANCE_PORT', value: String(port) },
  { name: 'CF_INSTANCE_ADDR', value: `$(CF_INSTANCE_IP):${String(port)}` },
  { name: 'CF_INSTANCE_PORTS', value: JSON.stringify([{ external: port, internal: port }]) },
];

const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } });

const podEnv = [field('POD_NAME', 'metadata.name'), field('CF_INSTANCE_GUID', 'metadata.uid')];
const addressEnv = [field('CF_INSTANCE_IP', 'status.hostIP'), field('CF_INSTANCE_INTERNAL_IP', 'status.podIP')];
const instanceGuid: EnvVar = { name: 'INSTANCE_GUID', value: '$(CF_INSTANCE_GUID)' };

/** Folder with a folder of files for each service binding (https://servicebinding.io). */
export const bindingRoot = '/bindings';
const bindingRootEnv = (hasServices: boolean): EnvVar[] => (hasServices ? [{ name: 'SERVICE_BINDING_ROOT', value: bindingRoot }] : []);

/** Variables that the runner of tasks adds. As in cf, a task has no index and no port. */
export function buildTaskInstanceEnv(hasServices: boolean): EnvVar[] {
  return [
    ...podEnv,
    ...addressEnv,
    instanceGuid,
    { name: 'CF_INSTANCE_PORT', value: '' },
    { name: 'CF_INSTANCE_ADDR', value: '' },
    { name: 'CF_INSTANCE_PORTS', value: '[]' },
    ...bindingRootEnv(hasServices),
  ];
}

/** Variables that the runner adds, about the instance. They come first, because others refer to them. */
export function buildInstanceEnv(ports: readonly number[], hasServices: boolean): EnvVar[] {
  const port = ports[0];
  return [
    ...podEnv,
    field('CF_INSTANCE_INDEX', "metadata.labels['apps.kubernetes.io/pod-index']"),
    ...addressEnv,
    instanceGuid,
    { name: 'INSTANCE_INDEX', value: '$(CF_INSTANCE_INDEX)' },
    ...(port === undefined ? [] : instancePortEnv(port)),
    ...bindingRootEnv(hasServices),
  ];
}

/** VCAP_SERVICES: services by label, `{}` without any. */
export function vcapServicesValue(services: readonly VcapService[]): string {
  return JSON.stringify(Object.groupBy(services, (service) => service.label));
}

const databaseSchemes: Record<string, string> = { mysql: 'mysql2', mysql2: 'mysql2', postgres: 'postgres', postgresql: 'postgres' };

/** DATABASE_URL: the first credential `uri` of a database, as in cf; undefined when no service has one. */
export function databaseUrl(services: readonly VcapService[]): string | undefined {
  for (const { credentials } of services) {
    const uri = credentials['uri'];
    if (typeof uri !== 'string') continue;
    const scheme = databaseSchemes[uri.split(':')[0] ?? ''];
    if (scheme !== undefined) return scheme + uri.slice(uri.indexOf(':'));
  }
  return undefined;
}
