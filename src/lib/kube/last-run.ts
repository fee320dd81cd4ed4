// Reads the first and last lines of a run of a container.

import { lostContainerReason, type ContainerStatus } from '../api/pod.ts';
import type { Cluster } from './cluster.ts';
import { KubeError } from './errors.ts';
import { defined } from '../defined.ts';
import { endsOf, linesFrom, upTo, usualSize, type EndsSize, type LogEnds } from './lines.ts';

/** Kubelets rotate a log at 10 MiB; this is some more. */
const mostBytes = 16 * 1024 * 1024;
const longestLine = 4096;

/** No lines. */
export const noLines: LogEnds = { head: [], omitted: 0, tail: [] };

/** A container in a pod. */
export interface ContainerPlace {
  ns: string;
  pod: string;
  container: string;
}

/** A run of a container: the one that failed last, the one that goes on, or the last one that has ended, which another pod of the name may have had. */
export type Run = 'failed' | 'present' | 'ended';

/** Which run is read, and how much of it is kept. */
export interface ReadRun {
  run?: Run;
  size?: EndsSize | undefined;
}

/** More was printed than is read: its last lines were read by themselves, and how many lines are before them is not known. */
const withLastLines = ({ head, omitted, tail }: LogEnds, last: readonly string[]): LogEnds => ({
  head,
  omitted: omitted + tail.length,
  tail: [`... and more lines, because the log is larger than ${String(mostBytes / 1024 ** 2)} MiB ...`, ...last],
});

/**
 * The first and last lines of a run of a container. It is read to its end, or as far as 16 MiB and then its last lines, and only the lines that are
 * returned are kept meanwhile.
 * @param status left out: it is not known, and the present run is read
 */
export async function readLastRun(
  cluster: Cluster,
  { ns, pod, container }: ContainerPlace,
  status: ContainerStatus | undefined,
  signal: AbortSignal,
  { run = 'failed', size = usualSize }: ReadRun = {},
): Promise<LogEnds> {
  if (status !== undefined && status.containerID === undefined) return noLines;
  // In the back-off before a restart, the kubelet serves the same run as the previous and as the present one.
  const hasPrevious = run !== 'present' && status !== undefined && status.state?.terminated === undefined && status.restartCount > 0;
  const mayBePresent = run !== 'ended' || (status !== undefined && status.state?.running === undefined);
  const read = async (previous: boolean): Promise<LogEnds> => {
    const endsBy = async (tailLines?: number): Promise<LogEnds & { isCut: boolean }> => {
      const stream = (await cluster.logs(ns, pod, { container, previous, signal, ...defined({ tailLines }) })) as AsyncIterable<Buffer>;
      let isCut = false;
      const part = upTo(stream, mostBytes, () => (isCut = true));
      return { ...(await endsOf(linesFrom(part, { keepRest: true, longest: longestLine }), size)), isCut };
    };
    const { isCut, ...ends } = await endsBy();
    if (!isCut) return ends;
    const last = await endsBy(size.tail - 1).catch(() => noLines);
    return withLastLines(ends, last.tail);
  };
  if (!hasPrevious) return mayBePresent ? read(false) : noLines;
  const isRefused = (error: unknown): LogEnds => {
    if (error instanceof KubeError && error.status === 400) return noLines;
    throw error;
  };
  const ends = await read(true).catch(isRefused);
  // The kubelet may not keep the run before any more.
  return ends.tail.length > 0 || !mayBePresent ? ends : read(false);
}

/** The last lines that the kubelet keeps of a container that failed; they outlive its log. */
export function keptByKubelet({ state, lastState }: ContainerStatus, size?: EndsSize): Promise<LogEnds> {
  const { reason, message = '' } = state?.terminated ?? lastState?.terminated ?? {};
  // That a container is not found any more is said by the kubelet, and not by the program.
  return endsOf((reason === lostContainerReason ? '' : message).split('\n'), size);
}
