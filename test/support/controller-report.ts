// What a run of the cluster ring did to the controller: its restarts, and the most memory that it held.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const namespace = 'kf-system';

interface Pods {
  items: {
    metadata: { name: string };
    status: { containerStatuses?: { restartCount: number; lastState?: { terminated?: { reason?: string; exitCode: number } } }[] };
  }[];
}

/** The highest number of bytes that the container's cgroup counted: version 1, else version 2. */
const peakFiles = '/sys/fs/cgroup/memory/memory.max_usage_in_bytes /sys/fs/cgroup/memory.peak';

export interface ControllerReport {
  pod: string;
  restarts: number;
  /** Why the container ended last, for example `OOMKilled (137)`. */
  lastEnd?: string;
  /** Bytes, page cache included; left out where the container cannot say. */
  peakBytes?: number;
}

/** @param kubeconfig of an admin; the controller's pods as they are now */
export async function readControllerReport(kubeconfig: string): Promise<ControllerReport[]> {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const { stdout } = await execute('kubectl', ['get', 'pods', '-n', namespace, '-l', 'app=kf-controller', '-o', 'json'], { env });
  return Promise.all(
    (JSON.parse(stdout) as Pods).items.map(async ({ metadata: { name }, status }) => {
      const [container] = status.containerStatuses ?? [];
      const ended = container?.lastState?.terminated;
      const peak = await execute('kubectl', ['exec', '-n', namespace, name, '--', 'sh', '-c', `cat ${peakFiles} 2>/dev/null`], {
        env,
      }).catch(() => ({ stdout: '' }));
      const peakBytes = Number.parseInt(peak.stdout, 10);
      return {
        pod: name,
        restarts: container?.restartCount ?? 0,
        ...(ended === undefined ? {} : { lastEnd: `${ended.reason ?? 'ended'} (${String(ended.exitCode)})` }),
        ...(Number.isNaN(peakBytes) ? {} : { peakBytes }),
      };
    }),
  );
}

/** One line for people: `controller kf-controller-…: 0 restarts, at most 93 MiB`. */
export function controllerLine(report: ControllerReport): string {
  const { pod, restarts, lastEnd, peakBytes } = report;
  const memory = peakBytes === undefined ? 'memory unknown' : `at most ${(peakBytes / 1024 ** 2).toFixed(0)} MiB`;
  return `controller ${pod}: ${String(restarts)} restarts${lastEnd === undefined ? '' : `, the last by ${lastEnd}`}, ${memory}`;
}
