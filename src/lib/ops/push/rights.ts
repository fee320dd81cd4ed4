// What a push needs the right to do, asked before work begins.

import { kinds, places } from '../../api/group.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { assertAccess } from '../../kube/access.ts';
import type { AccessQuestion } from '../../kube/cluster.ts';
import type { AppPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../target/session.ts';

const { group } = kinds.app;

const creates = (plural: string, ns: string): AccessQuestion => ({ verb: 'create', group, resource: plural, ns });

const uploads = ({ registry }: KfInfo): AccessQuestion => ({
  verb: 'create',
  resource: 'services',
  subresource: 'proxy',
  ns: registry.namespace,
  name: `http:${places.registryService}:${registry.port}`,
});

/** Before a new build of an app that is there. @throws KubeError `forbidden` naming what lacks */
export function assertMayBuild(session: SpaceSession, info: KfInfo, plan: AppPlan): Promise<void> {
  const build = creates(kinds.build.plural, session.space.guid);
  return assertAccess(session.cluster, plan.lifecycle === 'docker' ? [build] : [build, uploads(info)], session.signal);
}

/** Before an app is made. @throws KubeError `forbidden` naming what lacks */
export function assertMayPush(session: SpaceSession, info: KfInfo, plan: AppPlan): Promise<void> {
  const questions = [creates(kinds.app.plural, session.space.guid), creates(kinds.build.plural, session.space.guid)];
  return assertAccess(session.cluster, plan.lifecycle === 'docker' ? questions : [...questions, uploads(info)], session.signal);
}
