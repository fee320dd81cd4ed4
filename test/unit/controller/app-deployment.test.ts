// The progress of an app's last change, from that of its processes.

import { expect, test } from 'vitest';
import { deploymentOf } from '../../../src/controller/apps/deployment.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import { noInstances } from '../../../src/lib/api/rollout.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { AppRollout, CFApp, CFProcess, DeploymentStatus } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

const now = Date.parse('2026-01-01T00:01:00Z');
const failed: DeploymentStatus = { id: 'one', phase: 'Failed', reason: 'Crashed', message: 'It ended.', since: '2026-01-01T00:00:00Z' };

/** The only process is scaled to 0, and reports the change as being served by the version before. */
function atZero(before: DeploymentStatus, { id = before.id, rollout }: { id?: string; rollout?: AppRollout } = {}): DeploymentStatus {
  const app: Stored<CFApp> = asStored<CFApp>({
    metadata: { annotations: { [annotations.deployId]: id } },
    spec: { displayName: 'shop', desiredState: 'STARTED', currentDropletRef: { name: 'd' }, ...(rollout === undefined ? {} : { rollout }) },
    status: { deployment: before },
  } as unknown as CFApp);
  const process = asStored<CFProcess>({
    metadata: {},
    spec: { processType: 'web', desiredInstances: 0 },
    status: { actualInstances: 0, rollout: { id, phase: 'Serving' } },
  } as unknown as CFProcess);
  return deploymentOf(app, [process], id, now);
}

test('a change that failed has failed also when no instance is wanted any more', () => {
  expect(atZero(failed)).toEqual(failed);
});

test.each([
  ['another change', atZero(failed, { id: 'two' })],
  ['a change that was starting', atZero({ id: 'one', phase: 'Starting' })],
])('%s of an app without instances serves', (_, deployment) => {
  expect(deployment).toMatchObject({ phase: 'Serving', message: noInstances });
});

test('a change that failed and is canceled without instances is canceled', () => {
  const deployment = atZero(failed, { rollout: { id: 'one', canceled: true } });
  expect(deployment).toMatchObject({ phase: 'Serving', canceled: true });
});
