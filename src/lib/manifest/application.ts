// One entry of `applications` (cf-behaviour 4.3 and 4.5).

import { metadataProblem } from '../api/metadata.ts';
import { variableProblem, variablesProblem } from '../api/variables.ts';
import { Fields } from './fields.ts';
import type { Problems } from './fields.ts';
import { notYetOf, type NotYet } from './not-yet.ts';
import type { AppPlan, RoutePlan, ServicePlan, SidecarPlan } from './plan.ts';
import { processKeys, readProcesses } from './process.ts';
import { parseRoute } from './routes.ts';
import { plainOf } from './tree.ts';
import type { Located, LocatedMap, Position } from './tree.ts';
import { defined } from '../defined.ts';
import { noDockerfiles } from '../dockerfile.ts';

/** An app of the manifest, before flags. */
export interface ManifestApp extends Omit<AppPlan, 'name' | 'lifecycle' | 'defaultRoute'> {
  name?: string;
  nameAt: Position;
  /** The position of the path in the manifest. */
  pathAt: Position;
  /** The position of the image in the manifest. */
  imageAt?: Position;
  notYet: NotYet[];
  defaultRoute?: boolean;
}

/** The keys of an entry of `applications`. */
export const appKeys = [
  'name',
  'path',
  'buildpacks',
  'buildpack',
  'stack',
  'docker',
  'lifecycle',
  'cnb-credentials',
  'env',
  'services',
  'routes',
  'no-route',
  'random-route',
  'default-route',
  'metadata',
  'features',
  'processes',
  'sidecars',
  ...processKeys,
] as const;

const useRoutes = "Use 'routes': a list of entries such as 'route: host.example.com'.";
const retired = {
  host: useRoutes,
  hosts: useRoutes,
  domain: useRoutes,
  domains: useRoutes,
  'no-hostname': useRoutes,
  inherit: 'Use a YAML anchor (&name, *name, <<) instead.',
};

/** True for a key that has, or once had, a meaning in an entry of `applications`. */
export const isAppKey = (key: string): boolean => {
  const known = key.replaceAll('_', '-');
  return (appKeys as readonly string[]).includes(known) || known in retired;
};

const features = ['ssh', 'revisions', 'service-binding-k8s', 'file-based-vcap-services'];

/** Reads one entry of `applications`, before flags are applied. */
export function readApplication(map: LocatedMap, problems: Problems): ManifestApp {
  const fields = new Fields(map, { noun: 'an application', keys: appKeys, retired, lenient: true }, problems);
  const name = fields.text('name');
  if (name !== undefined && !/^[-\w]+$/.test(name)) {
    fields.refuse('name', `The name of an app consists of letters, digits, '-' and '_'; it is '${name}'.`);
  }
  const randomRoute = fields.boolean('random-route') ?? false;
  const defaultRoute = fields.boolean('default-route');
  if (randomRoute && defaultRoute === true) fields.refuse('random-route', 'random-route and default-route cannot both be true.');
  const app = {
    nameAt: name === undefined ? fields.at : fields.positionOf('name'),
    pathAt: fields.positionOf('path'),
    ...defined({ name, path: fields.text('path'), stack: fields.text('stack'), defaultRoute }),
    ...readLifecycle(fields, problems),
    env: readEnv(fields, problems),
    services: readServices(fields, problems),
    routes: readRoutes(fields, problems),
    noRoute: fields.boolean('no-route') ?? false,
    randomRoute,
    processes: readProcesses(fields, problems),
    sidecars: readSidecars(fields, problems),
    features: readFeatures(fields, problems),
    ...readMetadata(fields, problems),
  };
  const unknown = problems.takeRemarks().map((remark): NotYet => ({ ...remark, refused: false }));
  const missing = notYetOf(app, fields.value('cnb-credentials') !== undefined, (key) => fields.positionOf(key));
  return { ...app, notYet: [...unknown, ...missing] };
}

function readLifecycle(fields: Fields, problems: Problems): Pick<ManifestApp, 'buildpacks' | 'docker' | 'imageAt'> {
  const { docker, imageAt } = readDocker(fields, problems);
  const written = fields.oneOf('lifecycle', ['buildpack', 'cnb', 'docker']);
  const buildpacks = readBuildpacks(fields);
  if (docker !== undefined && buildpacks !== undefined) fields.refuse('docker', 'docker and buildpacks exclude each other.');
  if (docker !== undefined && written !== undefined && written !== 'docker')
    fields.refuse('lifecycle', `lifecycle ${written} does not go with docker.`);
  if (docker === undefined && written === 'docker') fields.refuse('lifecycle', 'lifecycle docker needs docker with an image.');
  return defined({ buildpacks, docker, imageAt });
}

function readDocker(fields: Fields, problems: Problems): Pick<ManifestApp, 'docker' | 'imageAt'> {
  const map = fields.map('docker');
  if (map === undefined) return {};
  // No key of cf, but platforms that build Dockerfiles have it.
  const dockerfile = map.entries.find(({ key }) => key === 'dockerfile');
  if (dockerfile !== undefined) {
    problems.add(dockerfile.keyAt, `kf builds no Dockerfiles: ${noDockerfiles.because}. Name an image: ${noDockerfiles.hint}`);
    return {};
  }
  const docker = new Fields(map, { noun: 'docker', keys: ['image', 'username'] }, problems);
  const image = docker.required('image', 'docker');
  if (image === undefined) return {};
  return { docker: { image, ...defined({ username: docker.text('username') }) }, imageAt: docker.positionOf('image') };
}

/** Undefined: not named. A single entry `default` or `null` means detection, as in the flag. */
function readBuildpacks(fields: Fields): string[] | undefined {
  const single = fields.text('buildpack');
  const listed = fields.value('buildpacks') === undefined ? undefined : fields.texts('buildpacks');
  if (single !== undefined && listed !== undefined)
    return fields.refuse('buildpack', 'buildpack and buildpacks exclude each other; use buildpacks.');
  const names = listed ?? (single === undefined ? undefined : [single]);
  return names?.length === 1 && (names[0] === 'default' || names[0] === 'null') ? [] : names;
}

function readEnv(fields: Fields, problems: Problems): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { key, keyAt, value } of fields.map('env')?.entries ?? []) {
    const text = value.kind === 'scalar' ? value.text : JSON.stringify(plainOf(value));
    const problem = variableProblem(key, text);
    if (problem !== undefined) problems.add(keyAt, problem);
    env[key] = text;
  }
  const tooMuch = variablesProblem(env);
  if (tooMuch !== undefined) fields.refuse('env', tooMuch);
  return env;
}

function readServices(fields: Fields, problems: Problems): ServicePlan[] {
  const taken = new Set<string>();
  return fields.list('services').flatMap((item) => {
    const services = readService(item, problems);
    for (const { name, bindingName = name } of services) {
      if (taken.has(bindingName)) problems.add(item.at, `Two services of the app are bound under the name '${bindingName}'.`);
      taken.add(bindingName);
    }
    return services;
  });
}

function readService(item: Located, problems: Problems): ServicePlan[] {
  if (item.kind === 'scalar' && item.text !== '') return [{ name: item.text }];
  if (item.kind !== 'map') {
    problems.add(item.at, 'An entry of services is a name, or a map with a name.');
    return [];
  }
  const service = new Fields(item, { noun: 'a service', keys: ['name', 'binding-name', 'parameters'] }, problems);
  const name = service.required('name', 'A service');
  return name === undefined
    ? []
    : [{ name, ...defined({ bindingName: service.text('binding-name'), parameters: service.data('parameters') }) }];
}

function readRoutes(fields: Fields, problems: Problems): RoutePlan[] {
  return fields.list('routes').flatMap((item) => readRoute(item, problems) ?? []);
}

function readRoute(item: Located, problems: Problems): RoutePlan | undefined {
  if (item.kind !== 'map') {
    problems.add(item.at, "An entry of routes is a map: 'route: host.example.com'.");
    return undefined;
  }
  const fields = new Fields(item, { noun: 'a route', keys: ['route', 'protocol', 'options'], lenient: true }, problems);
  const text = fields.required('route', 'A route');
  if (text === undefined) return undefined;
  const route = parseRoute(text);
  if (route === undefined)
    return fields.refuse(
      'route',
      `'${text}' is no route; a route looks like host.example.com, host.example.com/path or tcp://example.com:1234.`,
    );
  return {
    ...route,
    ...defined({ protocol: fields.oneOf('protocol', ['http1', 'http2', 'tcp']) ?? route.protocol, options: fields.data('options') }),
  };
}

function readSidecars(fields: Fields, problems: Problems): SidecarPlan[] {
  return fields.list('sidecars').flatMap((item) => {
    if (item.kind !== 'map') {
      problems.add(item.at, 'An entry of sidecars is a map.');
      return [];
    }
    const sidecar = new Fields(item, { noun: 'a sidecar', keys: ['name', 'command', 'process-types', 'memory'] }, problems);
    const [name, command] = [sidecar.required('name', 'A sidecar'), sidecar.required('command', 'A sidecar')];
    const processTypes = sidecar.texts('process-types');
    if (processTypes.length === 0) problems.add(item.at, "A sidecar needs 'process_types': the processes that it runs beside.");
    if (name === undefined || command === undefined) return [];
    return [{ name, command, processTypes, ...defined({ memoryMB: sidecar.megabytes('memory') }) }];
  });
}

function readFeatures(fields: Fields, problems: Problems): Record<string, boolean> {
  const map = fields.map('features');
  if (map === undefined) return {};
  const values = new Fields(map, { noun: 'features', keys: features }, problems);
  return Object.fromEntries(
    features.flatMap((feature) => {
      const value = values.boolean(feature);
      return value === undefined ? [] : [[feature, value]];
    }),
  );
}

function readMetadata(fields: Fields, problems: Problems): Pick<ManifestApp, 'labels' | 'annotations'> {
  const map = fields.map('metadata');
  if (map === undefined) return { labels: {}, annotations: {} };
  const metadata = new Fields(map, { noun: 'metadata', keys: ['labels', 'annotations'] }, problems);
  const texts = (key: string): Record<string, string | null> =>
    Object.fromEntries(
      (metadata.map(key)?.entries ?? []).map(({ key: name, keyAt, value }) => {
        const problem = metadataProblem(key, name, value.kind === 'scalar' ? value.text : '');
        if (problem !== undefined) problems.add(keyAt, problem);
        if (value.kind !== 'scalar') problems.add(value.at, `${key} must be texts.`);
        return [name, value.kind === 'scalar' && value.value !== null ? value.text : null];
      }),
    );
  return { labels: texts('labels'), annotations: texts('annotations') };
}
