// The progress events of ops, as data. Their sentences are in `lib/views/progress.ts`, which covers every type of event.

/** Bytes so far; `total` is 0 while it is not known. */
export interface ByteProgress {
  done: number;
  total: number;
}

/** Events of a push, from the manifest to the settings. */
type PushEvent =
  | { type: 'manifest-applied' }
  /** The builder does not have that stack of Cloud Foundry; `builtOn` is used instead. */
  | { type: 'stack-replaced'; app: string; stack: string; builtOn: string }
  /** Another push of the app is writing its settings. */
  | { type: 'awaiting-other-push' }
  | { type: 'reading-source' }
  | { type: 'packaging'; files: number; bytes: number }
  | { type: 'uploading' }
  /** Progress of the current packaging or upload. */
  | ({ type: 'bytes' } & ByteProgress)
  | { type: 'uploaded'; bytes: number }
  | { type: 'resolving-image'; image: string }
  | { type: 'writing-settings' };

type BuildEvent =
  | { type: 'staging' }
  | { type: 'build-log'; line: string }
  | { type: 'build-log-lost'; cause: string }
  /** `push` is the push command that would start a web process; `isPushed`: the event is part of a push. */
  | { type: 'no-web-process'; app: string; found: readonly string[]; push: string; isPushed: boolean };

/** Events of starting and stopping instances. */
type StartEvent =
  /** `asked`: the user has asked for a strategy. */
  | { type: 'starting-app'; app: string; asked: boolean }
  | { type: 'stopping-app' }
  | { type: 'app-stopped' }
  /** What the controller waits for; with the number of ready instances if its message has none. */
  | { type: 'waiting'; reason: string; ready?: number; wanted?: number }
  | { type: 'instances-pending'; ready: number; wanted: number }
  | { type: 'instances-starting'; ready: number; wanted: number }
  | { type: 'instances-scaling'; running: number; wanted: number }
  | { type: 'api-server-away' }
  | { type: 'awaiting-fallback' }
  /** `cause`: why the newest version failed. */
  | { type: 'fell-back'; app: string; cause: string }
  /** The user may not read the variables of a revision. */
  | { type: 'variables-hidden'; cause: string }
  | { type: 'settings-not-kept'; version: number }
  /** Without the controller: nothing of the process serves until its next instance is ready. */
  | { type: 'ending-only-instance'; app: string; process: string }
  /** Done without the controller. */
  | { type: 'acted-directly'; what: 'stopped' | 'started' | 'restarted' | 'scaled' }
  /** An app that was started without the controller, which had stopped it: no request reaches it yet. */
  | { type: 'still-unrouted'; app: string };

type RouteEvent =
  | { type: 'awaiting-claim'; url: string }
  | { type: 'awaiting-route'; url: string }
  | { type: 'awaiting-gateway'; url: string }
  | { type: 'awaiting-unrouted' }
  /** A deleted route whose end neither the gateway nor the controller has confirmed. */
  | { type: 'still-loaded'; url: string }
  /** The gateway has not confirmed that it sends the app no more requests. */
  | { type: 'still-routed'; app: string };

/** Events of orgs, spaces and bindings. */
type ControllerEvent = { type: 'awaiting-controller' } | { type: 'awaiting-binding' } | { type: 'awaiting-deletion'; name: string };

type TaskEvent = { type: 'awaiting-task'; task: string; isRunning: boolean };

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
  | 'gateway-handover'
  | 'org'
  | 'space'
  | 'network-proof'
  | 'gateway-proof'
  | 'remove-programs'
  | 'remove-kinds'
  | 'remove-controller';

/** What setup finds out about an operator's Gateway. */
export interface GatewayFinding {
  /** It accepts routes only of its own namespace, or of every namespace, or no pod there says that it serves the Gateway. */
  type: 'gateway-closed' | 'gateway-open' | 'gateway-without-pods';
  namespace: string;
  name: string;
  /** The label that the listeners should select, or that its pods should have. */
  label: string;
}

type InstallEvent =
  | (GatewayFinding & { type: 'gateway-closed' })
  | (GatewayFinding & { type: 'gateway-open' })
  | (GatewayFinding & { type: 'gateway-without-pods' })
  | { type: 'install-step'; step: InstallStep }
  /** A part without its own step is being applied. */
  | { type: 'install-part'; part: string }
  /** The same text as in the error of the wait. */
  | { type: 'awaiting'; what: string }
  /** There will be no domain apps.internal, because its namespace is somebody else's. */
  | { type: 'internal-domain-left-out'; namespace: string }
  /** The gateway is replaced without a second one that answers in the meantime. */
  | { type: 'gateway-gap'; why: string }
  /** The installation's description cannot be read; setup writes it again. */
  | { type: 'info-broken'; fault: string }
  | { type: 'registry-full'; free: number; total: number }
  /** The credentials of nodes expire on this day, because the controller that renews them is removed. */
  | { type: 'credentials-end'; day: string };

export type OpEvent =
  | PushEvent
  | BuildEvent
  | StartEvent
  | RouteEvent
  | ControllerEvent
  | TaskEvent
  | InstallEvent
  /** A sentence from a lower layer, like an error's message: the source cache, the trace, the stored target, a check of the cluster. */
  | { type: 'warning'; message: string }
  /** The current step has ended. */
  | { type: 'done' };

/** Receives the events of an op. */
export type Report = (event: OpEvent) => void;
