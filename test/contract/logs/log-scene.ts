// Pods with logs for the tests of one file: a scripted API server with a kubelet behind it, anew for each test.

import { afterEach, beforeEach, expect } from 'vitest';
import { connect } from '../../../src/lib/kube/client.ts';
import type { Cluster } from '../../../src/lib/kube/cluster.ts';
import { ScriptedApiServer } from '../../support/apiserver.ts';
import { ScriptedKubelet } from './scripted-kubelet.ts';

export interface LogScene {
  server: ScriptedApiServer;
  kubelet: ScriptedKubelet;
  cluster: Cluster;
  /** Ends what a test follows, at the latest after the test. */
  stop: AbortController;
}

/** @returns an object that has the parts of the present test */
export function useLogScene(): LogScene {
  const scene = {} as LogScene;
  beforeEach(async () => {
    const server = await ScriptedApiServer.start();
    const kubelet = new ScriptedKubelet(server);
    const cluster = await connect({ kubeconfig: server.kubeconfig(), env: {} });
    Object.assign(scene, { server, kubelet, cluster, stop: new AbortController() });
  });
  afterEach(async () => {
    const { server, cluster, stop } = scene;
    stop.abort();
    cluster.close();
    await server.stop();
    expect(server.failures).toEqual([]);
  });
  return scene;
}
