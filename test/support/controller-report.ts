// The state of the controller after a run of the cluster ring: its restarts, and its peak memory.

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

/** Prints the peak resident memory of the container's first process in KiB: `VmHWM` of proc(5). The image has no shell. */
const peakProgram = "console.log(/VmHWM:\\s+(\\d+) kB/.exec(require('node:fs').readFileSync('/proc/1/status', 'utf8'))[1])";

export interface ControllerReport {
  pod: string;
  restarts: number;
  /** Why the container last ended, for example `OOMKilled (137)`. */
  lastEnd?: string;
  /** Bytes; left out when the container does not run. */
  peakBytes?: number;
}

/** Reports on the present pods of the controller. @param kubeconfig of an admin */
export async function readControllerReport(kubeconfig: string): Promise<ControllerReport[]> {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const { stdout } = await execute('kubectl', ['get', 'pods', '-n', namespace, '-l', 'app=kf-controller', '-o', 'json'], { env });
  return Promise.all(
    (JSON.parse(stdout) as Pods).items.map(async ({ metadata: { name }, status }) => {
      const [container] = status.containerStatuses ?? [];
      const ended = container?.lastState?.terminated;
      const peak = await execute('kubectl', ['exec', '-n', namespace, name, '--', 'node', '-e', peakProgram], { env }).catch(
        () => undefined,
      );
      return {
        pod: name,
        restarts: container?.restartCount ?? 0,
        ...(ended === undefined ? {} : { lastEnd: `${ended.reason ?? 'ended'} (${String(ended.exitCode)})` }),
        ...(peak === undefined ? {} : { peakBytes: Number(peak.stdout) * 1024 }),
      };
    }),
  );
}

/** One line for the output: `controller kf-controller-…: 0 restarts, at most 93 MiB`. */
export function controllerLine(report: ControllerReport): string {
  const { pod, restarts, lastEnd, peakBytes } = report;
  const memory = peakBytes === undefined ? 'memory unknown' : `at most ${(peakBytes / 1024 ** 2).toFixed(0)} MiB`;
  return `controller ${pod}: ${String(restarts)} restarts${lastEnd === undefined ? '' : `, the last by ${lastEnd}`}, ${memory}`;
}
