// The guard of the gateway that setup installs: when it is used, and when the option is refused.

import { expect, test } from 'vitest';
import { settle } from '../../../src/lib/ops/install/kept-settings.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { buildGateway } from '../../../src/templates/setup/gateway.ts';

const planOf = (request: SetupRequest) => resolvePlan(request, '0.1.0', 'hostport');

interface Deployment {
  kind: string;
  spec: { template: { spec: { containers: { args: string[] }[] } } };
}

function argumentsOf(request: SetupRequest): string[] {
  const found = (buildGateway({ ...planOf(request) }) as unknown as Deployment[]).find(({ kind }) => kind === 'Deployment');
  return found?.spec.template.spec.containers[0]?.args ?? [];
}

test('every entry point uses the guard unless it is switched off, and a gateway without its middlewares does not start', () => {
  const middlewares = (request: SetupRequest): Set<string> =>
    new Set(
      argumentsOf(request)
        .filter((one) => one.includes('.http.middlewares='))
        .map((one) => one.slice(one.indexOf('=') + 1)),
    );
  expect(middlewares({})).toEqual(new Set(['guard@file,requestid@file']));
  expect(middlewares({ gatewayGuard: 'off' })).toEqual(new Set(['requestid@file']));
  expect(argumentsOf({})).toContain('--experimental.abortonpluginfailure=true');
});

test('the gateway needs no inotify instance, of which all pods of its user have a limited number on a node', () => {
  expect(argumentsOf({})).toContain('--providers.file.watch=false');
});

test.each([{ gateway: 'infra/public' }, { gatewayClass: 'istio' }])('the gateway of %j is not one that has the guard', (other) => {
  const name = other.gateway ?? other.gatewayClass;
  const message = `Incorrect Usage: 'gatewayGuard' needs the gateway that kf installs, and '${name}' is another one.`;
  expect(() => planOf({ ...other, gatewayGuard: 'on' })).toThrow(message);
  // A setting of before does not stay with it.
  expect(settle({ flags: other }, { settings: { gatewayGuard: 'off' }, from: 'record' })).toEqual(other);
});
