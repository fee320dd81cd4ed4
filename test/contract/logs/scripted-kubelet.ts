// Pods with logs behind a scripted API server, with what a kubelet does: a file per container life, filtered by whole seconds, rotation, restarts.

import type { Pod } from '../../../src/lib/api/pod-kind.ts';
import type { ContainerStatus } from '../../../src/lib/api/pod.ts';
import type { Call, ScriptedApiServer } from '../../support/apiserver.ts';

interface Line {
  /** Milliseconds since the epoch; nanoseconds are made of the line's number. */
  ms: number;
  time: string;
  text: string;
  /** It ends without a newline. */
  isRest?: boolean;
}

interface Life {
  id: string;
  lines: Line[];
  /** Lines before this index were rotated away. */
  firstServed: number;
  isOver: boolean;
  startedMs: number;
}

/** Of a kubelet that cannot be reached. */
export const noRoute = 'Get "https://10.0.0.7:10250/containerLogs": dial tcp 10.0.0.7:10250: connect: no route to host';

const epoch = Date.parse('2026-01-01T00:00:00Z');

/** One container of one pod. Time is the test's: `tick` moves it. */
export class ScriptedContainer {
  readonly name: string;
  readonly lives: Life[] = [];
  /** The last life has ended, and the next one is awaited. */
  isBackingOff = false;
  #wakers = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  get life(): Life {
    const life = this.lives.at(-1);
    if (life === undefined) throw new Error(`container ${this.name} was not started`);
    return life;
  }

  wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }

  change(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wakers.delete(done);
        resolve();
      };
      this.#wakers.add(done);
    });
  }

  status(): ContainerStatus {
    const life = this.lives.at(-1);
    const before = this.lives.at(-2);
    const base = { name: this.name, ready: false, restartCount: Math.max(0, this.lives.length - 1), image: 'i', imageID: 'i' };
    if (life === undefined) return { ...base, state: { waiting: { reason: 'ContainerCreating' } } };
    if (this.isBackingOff) {
      const terminated = { exitCode: 1, containerID: life.id, startedAt: new Date(life.startedMs).toISOString() };
      return { ...base, containerID: life.id, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated } };
    }
    return {
      ...base,
      ready: !life.isOver,
      containerID: life.id,
      state: life.isOver
        ? { terminated: { exitCode: 1, containerID: life.id, startedAt: new Date(life.startedMs).toISOString() } }
        : { running: { startedAt: new Date(life.startedMs).toISOString() } },
      ...(before === undefined
        ? {}
        : { lastState: { terminated: { exitCode: 1, containerID: before.id, startedAt: new Date(before.startedMs).toISOString() } } }),
    };
  }
}

export class ScriptedPod {
  readonly name: string;
  readonly uid: string;
  readonly labels: Record<string, string>;
  readonly containers: ScriptedContainer[];
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' = 'Running';
  isDeleting = false;
  restartPolicy: 'Always' | 'Never' = 'Always';
  node = 'node-1';

  constructor(name: string, uid: string, containers: string[], labels: Record<string, string>) {
    this.name = name;
    this.uid = uid;
    this.containers = containers.map((container) => new ScriptedContainer(container));
    this.labels = labels;
  }

  container(name?: string): ScriptedContainer {
    const found = this.containers.find((container) => container.name === (name ?? this.containers[0]?.name));
    if (found === undefined) throw new Error(`no container ${String(name)}`);
    return found;
  }
}

export interface KubeletFaults {
  /** Called for every chunk of a log body: true breaks the connection in the middle of it. */
  dropNow?: () => boolean;
  /** Called when a body is opened: true answers in order but ends early, as the API server does when it loses the kubelet. */
  endEarly?: () => boolean;
  /** Called for every request for a log: true answers as the API server does when it has no connection to the node of the pod. */
  isAway?: (pod: string) => boolean;
  /** Called for every request for a log: true gives no answer, as while the API server waits for the node of the pod. */
  isSilent?: (pod: string) => boolean;
}

export class ScriptedKubelet {
  readonly faults: KubeletFaults = {};
  readonly #server: ScriptedApiServer;
  readonly #ns: string;
  readonly #pods = new Map<string, ScriptedPod>();
  readonly #watchers = new Set<Call>();
  #version = 1;
  #lives = 0;
  nowMs = epoch;
  openStreams = 0;
  mostStreams = 0;

  constructor(server: ScriptedApiServer, ns = 'ns') {
    this.#ns = ns;
    this.#server = server;
    server.on(`GET /api/v1/namespaces/${ns}/pods`, (call) => (call.query.has('watch') ? this.#watch(call) : this.#list(call)));
    server.on(`GET /api/v1/namespaces/${ns}/pods/[^/]+`, (call) => this.#get(call));
    server.on(`GET /api/v1/namespaces/${ns}/pods/[^/]+/log`, (call) => this.#log(call));
  }

  get logCalls(): Call[] {
    return this.#server.callsOf('GET .*/log');
  }

  addPod(name: string, options: { uid?: string; containers?: string[]; labels?: Record<string, string> } = {}): ScriptedPod {
    const labels = options.labels ?? { 'korifi.cloudfoundry.org/process-type': 'web', 'apps.kubernetes.io/pod-index': '0' };
    const pod = new ScriptedPod(name, options.uid ?? `uid-${name}`, options.containers ?? ['application'], labels);
    this.#pods.set(name, pod);
    void this.tell('ADDED', pod);
    return pod;
  }

  /** Starts a container, or its next life. The watch hears of it unless `quietly`. */
  async start(pod: ScriptedPod, container?: string, quietly = false): Promise<void> {
    const target = pod.container(container);
    target.lives.push({ id: `containerd://${String(++this.#lives)}`, lines: [], firstServed: 0, isOver: false, startedMs: this.nowMs });
    target.isBackingOff = false;
    target.wake();
    if (!quietly) await this.tell('MODIFIED', pod);
  }

  /** Ends a container's life; the next one waits. */
  async backOff(pod: ScriptedPod): Promise<void> {
    pod.container().isBackingOff = true;
    await this.stop(pod);
  }

  async stop(pod: ScriptedPod, container?: string, quietly = false): Promise<void> {
    const target = pod.container(container);
    target.life.isOver = true;
    target.wake();
    if (!quietly) await this.tell('MODIFIED', pod);
  }

  async remove(pod: ScriptedPod): Promise<void> {
    this.#pods.delete(pod.name);
    for (const container of pod.containers) {
      if (container.lives.length > 0) container.life.isOver = true;
      container.wake();
    }
    await this.tell('DELETED', pod);
  }

  say(pod: ScriptedPod, text: string, options: { container?: string; afterMs?: number; isRest?: boolean } = {}): void {
    this.nowMs += options.afterMs ?? 1;
    const target = pod.container(options.container);
    const nanos = String(target.life.lines.length % 1_000_000).padStart(6, '0');
    const time = new Date(this.nowMs).toISOString().replace('Z', `${nanos}Z`);
    target.life.lines.push({ ms: this.nowMs, time, text, isRest: options.isRest === true });
    target.wake();
  }

  /** The lines up to now leave the file that is served. */
  rotate(pod: ScriptedPod): void {
    const { life } = pod.container();
    life.firstServed = life.lines.length;
  }

  async tell(type: string, pod: ScriptedPod): Promise<void> {
    this.#version++;
    await Promise.all([...this.#watchers].map((watcher) => watcher.events({ type, object: this.#wire(pod) })));
  }

  #wire(pod: ScriptedPod): Pod {
    return {
      metadata: {
        name: pod.name,
        namespace: this.#ns,
        uid: pod.uid,
        labels: pod.labels,
        resourceVersion: String(this.#version),
        ...(pod.isDeleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      },
      spec: { nodeName: pod.node, restartPolicy: pod.restartPolicy, containers: pod.containers.map(({ name }) => ({ name })) },
      status: { phase: pod.phase, containerStatuses: pod.containers.map((container) => container.status()) },
    };
  }

  #list(call: Call): void {
    call.json({ metadata: { resourceVersion: String(this.#version) }, items: [...this.#pods.values()].map((pod) => this.#wire(pod)) });
  }

  #get(call: Call): void {
    const pod = this.#pods.get(call.path.split('/')[6] ?? '');
    if (pod === undefined) call.fail(404, 'NotFound', 'pods not found', { name: 'x', kind: 'pods' });
    else call.json(this.#wire(pod));
  }

  async #watch(call: Call): Promise<void> {
    this.#watchers.add(call);
    // Sends all pods again, as a watch from an older version would, to include changes between the list and this watch.
    for (const pod of this.#pods.values()) await call.events({ type: 'MODIFIED', object: this.#wire(pod) });
    await call.closed;
    this.#watchers.delete(call);
  }

  async #log(call: Call): Promise<void> {
    const pod = this.#pods.get(call.path.split('/')[6] ?? '');
    const container = pod?.containers.find(({ name }) => name === call.query.get('container'));
    if (pod === undefined || container === undefined) return call.fail(404, 'NotFound', 'pods not found', { name: 'x', kind: 'pods' });
    if (this.faults.isSilent?.(pod.name) === true) return call.closed;
    if (this.faults.isAway?.(pod.name) === true) return call.fail(500, 'InternalError', noRoute);
    const isEarlier = call.query.get('previous') === 'true' && !container.isBackingOff;
    const life = isEarlier ? container.lives.at(-2) : container.lives.at(-1);
    if (life === undefined) {
      const what = call.query.get('previous') === 'true' ? 'previous terminated container' : 'container';
      return call.fail(400, 'BadRequest', `${what} "${container.name}" in pod "${pod.name}" is waiting to start: ContainerCreating`);
    }
    this.mostStreams = Math.max(this.mostStreams, ++this.openStreams);
    await this.#serve(call, container, life);
    this.openStreams--;
  }

  async #serve(call: Call, container: ScriptedContainer, life: Life): Promise<void> {
    const since = call.query.get('sinceTime');
    const sinceMs = since === null ? 0 : Date.parse(since);
    const tail = call.query.get('tailLines');
    let gone = false;
    void call.closed.then(() => {
      gone = true;
      container.wake();
    });
    const limit = call.query.get('limitBytes');
    const first = life.lines[life.firstServed];
    if (limit !== null) return call.text(first === undefined ? '' : `${first.time} ${first.text}`.slice(0, Number(limit)));
    call.response.writeHead(200, { 'Content-Type': 'text/plain' });
    call.response.flushHeaders();
    const endsEarly = this.faults.endEarly?.() === true;
    let at = tail === null ? life.firstServed : Math.max(life.firstServed, life.lines.length - Number(tail));
    while (!gone) {
      for (; at < life.lines.length; at++) {
        const line = life.lines[at];
        if (line === undefined || line.ms < sinceMs) continue;
        if (!(await this.#serveLine(call, line))) return;
        if (endsEarly && at % 3 === 2) return call.end();
      }
      if (call.query.get('follow') !== 'true' || life.isOver) return call.end();
      await container.change();
    }
  }

  /** False when the connection broke in the middle of it. */
  async #serveLine(call: Call, line: Line): Promise<boolean> {
    const bytes = Buffer.from(`${line.time} ${line.text}${line.isRest === true ? '' : '\n'}`);
    const breaks = this.faults.dropNow?.() === true;
    await call.write(breaks ? bytes.subarray(0, Math.floor(bytes.length / 2)) : bytes);
    if (breaks) call.drop();
    return !breaks;
  }
}
