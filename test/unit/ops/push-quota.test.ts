import { describe, expect, it } from 'vitest';
import type { KfInfo } from '../../../src/lib/api/kf-info.ts';
import type { AppPlan } from '../../../src/lib/manifest/plan.ts';
import { quotaRefusal } from '../../../src/lib/ops/apps/quota-left.ts';
import { instanceRefusal, needsOfNewApp } from '../../../src/lib/ops/push/quota.ts';

const info = {
  processDefaults: { instances: (type: string) => (type === 'web' ? 1 : 0), memoryMB: 256, diskQuotaMB: 1024 },
  staging: { memoryMB: 1024, diskMB: 4096 },
} as unknown as KfInfo;

const plan = (parts: Partial<AppPlan> = {}): AppPlan =>
  ({ name: 'new-app', lifecycle: 'docker', processes: [], routes: [], services: [], defaultRoute: true, ...parts }) as unknown as AppPlan;

const web = (parts: object): Partial<AppPlan> => ({ processes: [{ type: 'web', ...parts }] });

/** The message if a quota of `name` has this much left. */
function refused(name: string, app: AppPlan, left: string): { why: string; flags?: string } | undefined {
  const quota = { metadata: { name: 'limits' }, status: { hard: { [name]: left }, used: { [name]: '0' } } };
  return quotaRefusal([quota], needsOfNewApp(app, info, true));
}

const count = (plural: string): string => `count/${plural}.korifi.cloudfoundry.org`;
const built = { lifecycle: 'buildpack' } as unknown as Partial<AppPlan>;
const withWorker = {
  processes: [
    { type: 'web', instances: 3 },
    { type: 'worker', instances: 1 },
  ],
} as unknown as Partial<AppPlan>;

describe('the message names what a new app exceeds, and flags that help:', () => {
  it.each([
    ['memory', '256Mi', plan(web({ instances: 1, memoryMB: 512 })), '1 instance takes 512M of memory', '-m 128M -i 1'],
    ['memory', '256Mi', plan(web({ instances: 4, memoryMB: 512 })), '4 instances take 2G of memory', '-m 128M -i 1'],
    ['memory', '64Mi', plan(web({ instances: 1, memoryMB: 512 })), '1 instance takes 512M of memory', undefined],
    ['memory', '256Mi', plan(withWorker), '4 instances take 1G of memory', undefined],
    ['memory', '256Mi', plan({ ...built, ...web({ memoryMB: 512 }) }), 'its build takes 1G of memory', undefined],
    ['memory', '512Mi', plan({ ...built, ...web({ memoryMB: 2048 }) }), '1 instance takes 2G of memory', undefined],
    ['ephemeral-storage', '512Mi', plan(web({ instances: 1 })), '1 instance takes 1G of disk', '-k 256M -i 1'],
    ['ephemeral-storage', '64Mi', plan(web({ instances: 2 })), '2 instances take 2G of disk', undefined],
    ['limits.ephemeral-storage', '2Gi', plan({ ...built, ...web({ instances: 1 }) }), 'its build takes up to 12G of disk', undefined],
    ['limits.ephemeral-storage', '512Mi', plan(web({ instances: 1 })), '1 instance takes 1G of disk', '-k 256M -i 1'],
    ['pods', '0', plan(web({ instances: 1 })), 'it takes 1 more pod', undefined],
    ['pods', '2', plan(web({ instances: 3 })), 'it takes 3 more pods', '-i 1'],
    [count('cfapps'), '0', plan(), 'it takes 1 more app', undefined],
    [count('cfbuilds'), '0', plan(), 'it takes 1 more build', undefined],
    [count('cfprocesses'), '1', plan(withWorker), 'it takes 2 more processes', undefined],
    [count('cfroutes'), '0', plan(), 'it takes 1 more route', undefined],
    [count('cfservicebindings'), '0', plan({ services: [{}, {}] as never }), 'it takes 2 more service bindings', undefined],
  ])('%s, with %s left', (name, left, app, words, flags) => {
    const found = refused(name, app, left);
    const shown = left.replace('i', '');
    expect(found?.why).toBe(`${words}, and the quota 'limits' has ${shown} of ${shown} left (${name})`);
    expect(found?.flags).toBe(flags);
  });

  it('nothing is exceeded if the quota is large enough', () => {
    expect(refused('memory', plan(web({ instances: 1, memoryMB: 512 })), '512Mi')).toBeUndefined();
    expect(refused('pods', plan({ noRoute: true }), '1')).toBeUndefined();
    // A build requests no disk, it only has limits.
    expect(refused('requests.ephemeral-storage', plan({ ...built, ...web({ instances: 1 }) }), '1Gi')).toBeUndefined();
  });
});

describe('a quota of cf is named', () => {
  const applied = (quotas: object) => ({ 'kf.cloudfoundry.org/quotas': JSON.stringify(quotas) });
  const small = { name: 'small', limits: { totalMemoryMB: 512, appInstances: 2, instanceMemoryMB: 128 } };
  const quota = (name: string, resource: string, hard: string, used: string, quotas: object) => ({
    metadata: { name, annotations: applied(quotas) },
    ...(name === 'kf-instances' ? { spec: { scopes: ['NotTerminating'] } } : {}),
    status: { hard: { [resource]: hard }, used: { [resource]: used } },
  });
  const whyNot = (app: AppPlan, ...quotas: ReturnType<typeof quota>[]) => quotaRefusal(quotas, needsOfNewApp(app, info, true));

  it('when it is one of the space', () => {
    const limits = quota('kf-limits', 'requests.memory', '512Mi', '256Mi', { space: small });
    expect(whyNot(plan(web({ instances: 3, memoryMB: 128 })), limits)).toEqual({
      why: "3 instances take 384M of memory, and the space quota 'small' allows 512M of memory, of which 256M is left",
      flags: '-m 128M -i 1',
      deciding: { scope: 'space', name: 'small', limit: 'totalMemoryMB', most: 512 * 2 ** 20 },
    });
  });

  it('when not even the whole quota of the org is enough, whatever part this space has', () => {
    const limits = quota('kf-limits', 'requests.memory', '128Mi', '100Mi', { org: small });
    expect(whyNot(plan(web({ instances: 1, memoryMB: 256 })), limits)).toBeUndefined();
    expect(whyNot(plan(web({ instances: 1, memoryMB: 512 })), limits)?.why).toBe(
      "1 instance takes 512M of memory, and the org quota 'small' allows 512M of memory, of which this space uses 100M",
    );
  });

  it('for app instances, which a build is not', () => {
    const limits = quota('kf-instances', 'pods', '2', '1', { space: small });
    expect(whyNot(plan(web({ instances: 2 })), limits)).toEqual({
      why: "it takes 2 more instances, and the space quota 'small' allows 2 app instances, of which 1 is left",
      flags: '-i 1',
      deciding: { scope: 'space', name: 'small', limit: 'appInstances', most: 2 },
    });
    expect(whyNot(plan({ ...built, ...web({ instances: 1 }) }), limits)).toBeUndefined();
  });

  it('for the memory of one instance, also of the default', () => {
    const limits = quota('kf-limits', 'pods', '64', '0', { space: small });
    const why = "an instance of 'web' takes 256M of memory, and the space quota 'small' allows at most 128M";
    expect(instanceRefusal([limits], plan(), info)).toEqual({ why, flags: '-m 128M' });
    expect(instanceRefusal([limits], plan(web({ memoryMB: 256 })), info)).toEqual({ why, flags: '-m 128M' });
    expect(instanceRefusal([limits], plan(web({ memoryMB: 128 })), info)).toBeUndefined();
    expect(instanceRefusal([], plan(), info)).toBeUndefined();
  });
});
