// What ops report while they run, as data. The sentences are in `lib/views/progress.ts`, which covers every type of event.

/** Bytes so far; `total` is 0 while it is not known. */
export interface ByteProgress {
  done: number;
  total: number;
}

/** Of a push, from the manifest to the settings. */
type PushEvent =
  | { type: 'manifest-applied' }
  /** The builder has no such stack of Cloud Foundry; `builtOn` takes its place. */
  | { type: 'stack-replaced'; app: string; stack: string; builtOn: string }
  /** Another push of the app writes its settings. */
  | { type: 'awaiting-other-push' }
  | { type: 'reading-source' }
  | { type: 'packaging'; files: number; bytes: number }
  | { type: 'uploading' }
  /** Of the packaging or the upload that runs. */
  | ({ type: 'bytes' } & ByteProgress)
  | { type: 'uploaded'; bytes: number }
  | { type: 'resolving-image'; image: string }
  | { type: 'writing-settings' };

type BuildEvent =
  | { type: 'staging' }
  | { type: 'build-log'; line: string }
  | { type: 'build-log-lost'; cause: string }
  /** `push` is the command that would start one; `isPushed`: it is the push that is under way. */
  | { type: 'no-web-process'; app: string; found: readonly string[]; push: string; isPushed: boolean };

/** Of instances that come and go. */
type StartEvent =
  | { type: 'starting-app'; app: string }
  | { type: 'stopping-app' }
  | { type: 'app-stopped' }
  /** What the controller says that it waits for, with the instances that are ready where it counts none. */
  | { type: 'waiting'; reason: string; ready?: number; wanted?: number }
  | { type: 'instances-pending'; ready: number; wanted: number }
  | { type: 'instances-starting'; ready: number; wanted: number }
  | { type: 'instances-scaling'; running: number; wanted: number }
  | { type: 'api-server-away' }
  | { type: 'awaiting-fallback' }
  /** `cause`: why the newest version failed. */
  | { type: 'fell-back'; app: string; cause: string }
  /** Without the controller. */
  | { type: 'acted-directly'; what: 'stopped' | 'started' | 'restarted' | 'scaled' };

type RouteEvent =
  | { type: 'awaiting-claim'; url: string }
  | { type: 'awaiting-route'; url: string }
  | { type: 'awaiting-gateway'; url: string }
  | { type: 'awaiting-silence' }
  /** The gateway has not said that it sends the app no more requests. */
  | { type: 'not-silent'; app: string };

/** Of orgs, spaces and bindings. */
type ControllerEvent = { type: 'awaiting-controller' } | { type: 'awaiting-binding' } | { type: 'awaiting-deletion'; name: string };

/** The steps of setup and uninstall. */
export type InstallStep =
  | 'inspect'
  | 'plan'
  | 'namespaces'
  | 'registry'
  | 'registry-proof'
  | 'kinds'
  | 'controller'
  | 'gateway'
  | 'org'
  | 'space'
  | 'network-proof'
  | 'gateway-proof'
  | 'remove-programs'
  | 'remove-kinds'
  | 'remove-controller';

type InstallEvent =
  | { type: 'install-step'; step: InstallStep }
  /** A part that has no step of its own is applied. */
  | { type: 'install-part'; part: string }
  /** As the wait itself names it, also in its error. */
  | { type: 'awaiting'; what: string }
  /** The installation's description cannot be read; setup writes it anew. */
  | { type: 'info-broken'; fault: string }
  | { type: 'registry-full'; free: number; total: number }
  /** The credentials of nodes end on this day, for the controller that renews them is removed. */
  | { type: 'credentials-end'; day: string };

export type OpEvent =
  | PushEvent
  | BuildEvent
  | StartEvent
  | RouteEvent
  | ControllerEvent
  | InstallEvent
  /** A sentence of a layer below, as an error's message is: the source's cache, the trace, the stored target, a check of the cluster. */
  | { type: 'warning'; message: string }
  /** What was under way is over. */
  | { type: 'done' };

/** Takes what an op reports. */
export type Report = (event: OpEvent) => void;
