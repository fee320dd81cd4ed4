// The results of ops: views print them, and `--json` contains them. Sizes in bytes or MB as named, times RFC 3339.

import type { DeploymentDetails, StrategyDefault } from './deployment-details.ts';

export type AppState = 'started' | 'stopped';

export interface ProcessCount {
  type: string;
  running: number;
  instances: number;
}

export interface AppSummary {
  name: string;
  guid: string;
  state: AppState;
  processes: ProcessCount[];
  /** Host, domain and path. */
  routes: string[];
}

/** How the last process of an instance ended. */
export interface LastEnd {
  exitCode?: number;
  /** Kubernetes' reason: `Error`, `OOMKilled`, `Completed` … */
  reason?: string;
  at?: string;
}

export interface InstanceDetails {
  index: number;
  state: 'running' | 'starting' | 'crashed' | 'down';
  since?: string;
  /** Cores. */
  cpu?: number;
  memoryBytes?: number;
  /** The sizes with which this instance runs; those of the process may have changed since. Left out when unknown. */
  memoryMB?: number;
  diskMB?: number;
  ready?: boolean;
  restarts?: number;
  /** Left out when it never ended, or when the user may not see pods. */
  lastEnd?: LastEnd;
  details?: string;
  pod?: string;
}

export interface ProcessDetails extends ProcessCount {
  guid: string;
  command?: string;
  memoryMB: number;
  diskMB: number;
  /** Bytes per second; left out: unlimited. */
  logRateLimit?: number;
  healthCheck: string;
  /** Names. */
  sidecars: string[];
  instanceDetails: InstanceDetails[];
  /** While a deployment replaces instances: those of each version, the oldest version first. */
  versions?: VersionInstances[];
}

/** The instances of one version of a process. */
export interface VersionInstances {
  running: number;
  instances: number;
  instanceDetails: InstanceDetails[];
}

/** Something that happened to an app. */
export interface AppEvent {
  time: string;
  /** A type of cf, or `kubernetes.` and the reason of an Event. */
  type: string;
  /** Empty when it is not known. */
  actor: string;
  description: string;
}

/** A health check, or a readiness health check, of one process. */
export interface ProcessHealthCheck {
  process: string;
  type: 'http' | 'port' | 'process';
  /** Of an http check. */
  endpoint?: string;
  invocationTimeoutSeconds?: number;
  intervalSeconds?: number;
}

export interface AppDetails {
  name: string;
  guid: string;
  state: AppState;
  routes: string[];
  lifecycle: 'buildpack' | 'docker';
  lastUploaded?: string;
  stack?: string;
  buildpacks: { name: string; version?: string }[];
  dockerImage?: string;
  processes: ProcessDetails[];
  deployment?: DeploymentDetails;
  /** Left out when neither the app nor its space has a default. */
  defaultStrategy?: StrategyDefault;
}

export type TaskState = 'PENDING' | 'RUNNING' | 'CANCELING' | 'SUCCEEDED' | 'FAILED';

export interface TaskDetails {
  /** Counts from 1 for each app; left out until the controller has given it. */
  id?: number;
  guid: string;
  name: string;
  state: TaskState;
  startTime: string;
  /** Left out for a task that runs the command of its process. */
  command?: string;
  /** The process type that the task names. */
  process?: string;
  memoryMB?: number;
  diskMB?: number;
  failureReason?: string;
}

export interface PackageSummary {
  guid: string;
  type: 'bits' | 'docker';
  state: 'ready' | 'awaiting_upload';
  created: string;
}

/** A build that succeeded; it has the build's GUID. */
export interface DropletSummary {
  guid: string;
  state: 'staged';
  created: string;
  /** The app's droplet: it runs, or will after the next start. */
  current: boolean;
  package: string;
}

export interface RevisionSummary {
  version: number;
  guid: string;
  description: string;
  droplet: string;
  created: string;
  /** Who changed the app. */
  by?: string;
  /** The image of the droplet, by digest. */
  image?: string;
  /** Of the source's paths, modes and bytes. */
  contentHash?: string;
  /** The git commit that the source was pushed from; ends with `-dirty` when files differed from it. */
  commit?: string;
  /** URL of the run of a CI system that pushed the source. */
  ciRun?: string;
  /** All instances of the running app have it. */
  deployed: boolean;
  /** Its droplet and settings still exist: a rollback can return to it. */
  deployable: boolean;
}

export interface RevisionChange {
  what: 'droplet' | 'source' | 'commit' | 'variable' | 'command' | 'sidecars';
  /** Of the variable, or of the process of the command or sidecars. */
  name?: string;
  change: 'added' | 'removed' | 'changed';
  /** Of droplet, source and commit only: all else is secret. */
  from?: string;
  to?: string;
}

export interface RevisionDiff {
  app: string;
  from: number;
  to: number;
  /** False when variables, commands and sidecars could not be compared: not kept any more, or not yours to see. */
  complete: boolean;
  changes: RevisionChange[];
}

export interface RevisionDetails extends RevisionSummary {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** Left out when they are not kept any more, or the user may not see them. */
  env?: Record<string, string>;
}

export interface ServiceSummary {
  name: string;
  guid: string;
  offering: string;
  plan: string;
  boundApps: string[];
  lastOperation: string;
  broker: string;
  tags: string[];
}

export interface BoundApp {
  name: string;
  /** Left out for a binding that has the name of its service. */
  bindingName?: string;
  /** As cf words it: `create succeeded`. */
  status: string;
  message: string;
}

export interface ServiceDetails {
  name: string;
  guid: string;
  type: string;
  /** The Secret that the credentials come from, if kf did not write it. */
  fromSecret?: string;
  tags: string[];
  routeServiceUrl: string;
  syslogDrainUrl: string;
  lastOperation: { status: string; message: string; startedAt: string; updatedAt: string };
  boundApps: BoundApp[];
}

export interface RouteSummary {
  guid: string;
  space: string;
  host: string;
  domain: string;
  path: string;
  protocol: string;
  /** What the gateway speaks to the apps. */
  appProtocols: string[];
  apps: string[];
  url: string;
  /** Why the route does not work, if so. */
  problem?: string;
}

export interface RouteDetails extends RouteSummary {
  destinations: {
    app: string;
    process: string;
    /** Missing while the controller has not chosen one. */
    port?: number;
    protocol: string;
  }[];
}

export interface AutoscalerMetric {
  metric: 'cpu' | 'cpuutil' | 'memoryutil' | 'memoryused';
  /** Average of all instances; `%` of one core (`cpu`) or of what an instance may use. */
  target: number;
  unit: '%' | 'MB';
  /** Absent while nothing is measured. */
  now?: number;
}

/** The autoscaler of a process. */
export interface Autoscaler {
  process: string;
  /** As it is set now. */
  instances: number;
  min: number;
  max: number;
  metrics: AutoscalerMetric[];
  /** Why it cannot scale now, in Kubernetes' words. */
  obstacle?: string;
}

export interface NetworkPolicySummary {
  source: string;
  destination: string;
  protocol: 'tcp' | 'udp';
  /** `8080` or `8080-8090`. */
  ports: string;
  destinationSpace: string;
  destinationOrg: string;
}

export interface DomainSummary {
  name: string;
  guid: string;
  availability: 'shared' | 'private';
  internal: boolean;
  protocols: string[];
  /** Requests with http are redirected to https. */
  httpRedirect?: true;
  /** Of the gateway for every host of the domain, with the name of the authority that signed it; left out when there is none. */
  certificate?: { issuer: string; notAfter: string };
  /** Why the gateway does not show the certificate that cert-manager should have issued; it shows one of kf meanwhile. */
  certificateProblem?: string;
}

export interface PlaceSummary {
  name: string;
  guid: string;
}

/** A quota of orgs or of spaces; null means unlimited. */
export interface QuotaSummary extends PlaceSummary {
  limits: {
    /** Of all instances, tasks and builds. */
    totalMemoryMB: number | null;
    instanceMemoryMB: number | null;
    appInstances: number | null;
    routes: number | null;
    serviceInstances: number | null;
  };
}

/** Lists that the user may not read are left out. */
export interface OrgDetails extends PlaceSummary {
  domains: string[];
  /** Name of the quota that was given to it. */
  quota?: string;
  /** Names of the ResourceQuotas. */
  quotas?: string[];
  spaces: PlaceSummary[];
}

/** Lists that the user may not read are left out. */
export interface SpaceDetails extends PlaceSummary {
  org: PlaceSummary;
  apps?: string[];
  services?: string[];
  /** Name of the quota that was given to it. */
  quota?: string;
  /** Names of the ResourceQuotas. */
  quotas?: string[];
}

export interface EnvDetails {
  vcapServices: Record<string, unknown>;
  vcapApplication: Record<string, unknown>;
  /** The variables of `set-env` and of manifests. */
  variables: Record<string, string>;
  /** Missing Secrets, by the part that they should hold. */
  missing?: { vcapServices?: string; vcapApplication?: string; variables?: string };
}

export interface TargetDetails {
  endpoint: string;
  /** The version of the CF API that kf follows. */
  apiVersion: string;
  kubernetesVersion: string;
  context: string;
  user: string;
  org?: PlaceSummary;
  space?: PlaceSummary;
}

/** A subject of a RoleBinding: `client` is a service account. */
export interface RoleUser {
  name: string;
  origin: 'kubernetes' | 'client' | 'group';
}

export interface RoleHolders {
  /** cf's name of the role. */
  role: string;
  users: RoleUser[];
}

export interface StackSummary {
  name: string;
  guid: string;
  description: string;
}

/** A buildpack of the builder. */
export interface BuildpackSummary {
  /** From 1, in the order of the builder. */
  position: number;
  name: string;
  stack: string;
  version: string;
}

/** A Warning of Kubernetes about something of an app. */
export interface WhyEvent {
  time: string;
  /** Kind and name. */
  object: string;
  reason: string;
  message: string;
}

/** Why something failed, or that nothing did. */
export interface WhyDetails {
  kind: 'app' | 'build' | 'task' | 'route' | 'service';
  name: string;
  /** `waiting`: it may still become well. */
  state: 'failed' | 'waiting' | 'well';
  /**
   * The code of the cause; left out when nothing failed. An app is well, with a cause, when an instance ended once lately and runs again, or when the
   * revision that was asked for failed once and serves now.
   */
  cause?: string;
  /** One sentence. */
  message: string;
  /** Since when that is so: of a task that has ended when it ended, of another one when it was created. */
  since?: string;
  /** The revision of the app that failed, or that fails now, or whose canary is paused. */
  version?: number;
  process?: string;
  instance?: number;
  container?: string;
  exitCode?: number;
  /** First and last lines of what failed, or of a task that succeeded. */
  log?: { head: string[]; omitted: number; tail: string[] };
  /** One sentence: why a build or a task has no lines, although there may have been some. */
  logLost?: string;
  /** The newest first. */
  events: WhyEvent[];
  /** What the revision that failed has changed since the one that served last. */
  changed?: RevisionDiff;
  /** The last change of an app of which the version that served before fails now; all else is then about that version. */
  failedChange?: Pick<WhyDetails, 'version' | 'cause' | 'message' | 'since' | 'exitCode'>;
  /** Commands to try. */
  next: string[];
}
