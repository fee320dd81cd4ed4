// Restarts of an app's program by the kubelet, because an answer to its health check took too long, as on a node without CPU time. Nobody else has a part
// in them, and a node makes them at any time. They excuse what they explain in a test under load, and nothing else.

/** Of a pod of an app, as Kubernetes has it. */
export interface CheckedPod {
  metadata: { uid: string };
  status: {
    conditions?: { type: string; status: string; lastTransitionTime: string }[];
    containerStatuses?: { restartCount: number; state?: { running?: { startedAt: string } } }[];
  };
}

/** An Event `Killing`. The kubelet counts equal ones in one object; times have whole seconds. */
export interface KillingEvent {
  message: string;
  involvedObject: { uid: string };
  firstTimestamp: string | null;
  lastTimestamp: string | null;
  count?: number;
}

/** Milliseconds by the clock. */
interface Span {
  from: number;
  to: number;
}

/** All of them of one pod during some work. */
export interface CheckRestarts extends Span {
  uid: string;
  /** So many at most. */
  most: number;
}

/** A check waits for a second, and the app may have been too slow before that too. */
const beforeMs = 3_000;
/** The gateway hears of an instance that is ready again a moment later. */
const afterMs = 3_000;

const timeOf = (text: string | null | undefined): number => Date.parse(text ?? '');

/** When the app was ready again after the last restart; Infinity when it is not yet. */
function readyAgain({ status }: CheckedPod, after: number): number {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const startedAt = timeOf(status.containerStatuses?.[0]?.state?.running?.startedAt);
  const isBack = ready?.status === 'True' && startedAt >= after;
  return isBack ? Math.max(startedAt, timeOf(ready.lastTransitionTime)) : Infinity;
}

/**
 * The restarts of each pod whose Event lies within the time of the work.
 * @param pods as they are afterwards
 */
export function checkRestarts(events: readonly KillingEvent[], pods: readonly CheckedPod[], during: Span): CheckRestarts[] {
  const begin = Math.floor(during.from / 1_000) * 1_000;
  const isWithin = (time: number): boolean => time >= begin && time <= during.to;
  return events.flatMap(({ message, involvedObject: { uid }, firstTimestamp, lastTimestamp, count = 1 }) => {
    const pod = pods.find(({ metadata }) => metadata.uid === uid);
    const first = timeOf(firstTimestamp);
    const times = [first, timeOf(lastTimestamp)].filter(isWithin);
    if (pod === undefined || times.length === 0 || !message.includes('failed liveness probe')) return [];
    const most = isWithin(first) ? count : count - 1;
    return [{ uid, most, from: Math.min(...times) - beforeMs, to: readyAgain(pod, Math.max(...times)) + afterMs }];
  });
}

/** True for a request that was under way during one of these restarts. */
export const isDuring = (restarts: readonly Span[], request: Span): boolean =>
  restarts.some(({ from, to }) => request.from <= to && request.to >= from);

/** A pod of an app, and how often its program was restarted. */
export interface CountedPod {
  uid: string;
  restarts: number;
}

/** The pods of an app that went or came, and those whose program was restarted more often than by their checks. */
export function changedPods(before: readonly CountedPod[], after: readonly CountedPod[], restarts: readonly CheckRestarts[]): string[] {
  const earlier = new Map(before.map((pod) => [pod.uid, pod.restarts]));
  const uids = new Set(after.map(({ uid }) => uid));
  const gone = [...earlier.keys()].filter((uid) => !uids.has(uid)).map((uid) => `${uid} is gone`);
  const changed = after.flatMap(({ uid, restarts: now }) => {
    const then = earlier.get(uid);
    if (then === undefined) return [`${uid} is new`];
    const most = restarts.filter((one) => one.uid === uid).reduce((sum, one) => sum + one.most, 0);
    return now >= then && now <= then + most ? [] : [`${uid} was restarted ${String(now - then)} times, ${String(most)} by its checks`];
  });
  return [...gone, ...changed];
}
