// The flags of `push` under the names that a plan gives them.

import { parseChoice } from './values.ts';

const checkTypes = ['http', 'port', 'process', 'none'] as const;

/** `-u`: `none` is an old name for `process`. @throws KfError `usage` */
export async function parseHealthCheckType(text: string): Promise<(typeof checkTypes)[number]> {
  return Promise.resolve(parseChoice(text, '--health-check-type', checkTypes));
}

/** Flags under the names that the manifest layer gives them. */
export function planFlags(flags: Record<string, unknown>): Record<string, unknown> {
  const names: Record<string, string> = {
    buildpack: 'buildpacks',
    'start-command': 'command',
    'no-manifest': 'noManifest',
    var: 'vars',
    'vars-file': 'varsFiles',
    'docker-image': 'dockerImage',
    memory: 'memoryMB',
    disk: 'diskQuotaMB',
    'app-start-timeout': 'timeoutSeconds',
    'health-check-type': 'healthCheckType',
    'no-route': 'noRoute',
    'random-route': 'randomRoute',
    'no-start': 'noStart',
    'no-wait': 'noWait',
    'redact-env': 'redactEnv',
  };
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  const translated = given.map(([name, value]) => [
    names[name] ?? name,
    value === 'none' && name === 'health-check-type' ? 'process' : value,
  ]);
  return Object.fromEntries(translated) as Record<string, unknown>;
}
