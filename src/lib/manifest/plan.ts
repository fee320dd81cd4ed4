// The plan of a push, from manifest, variables and flags: typed, complete, and independent of YAML.

import type { RolloutOptions, Strategy } from '../api/rollout.ts';
import type { Sidecar } from '../api/types.generated.ts';

/** Everywhere below, a missing field means: keep the app's value. */
export interface HealthCheckPlan {
  type?: 'http' | 'port' | 'process';
  endpoint?: string;
  intervalSeconds?: number;
  invocationTimeoutSeconds?: number;
}

export interface ProcessPlan {
  type: string;
  /** null: use the command that the build detects again. */
  command?: string | null;
  user?: string;
  instances?: number;
  memoryMB?: number;
  diskQuotaMB?: number;
  /** Bytes per second, -1 for unlimited. */
  logRateLimitBPS?: number;
  /** Time limit for a start. */
  timeoutSeconds?: number;
  healthCheck?: HealthCheckPlan;
  readinessHealthCheck?: HealthCheckPlan;
  /** The sidecars of the manifest that name this process. */
  sidecars?: Sidecar[];
}

export interface SidecarPlan {
  name: string;
  command: string;
  processTypes: string[];
  memoryMB?: number;
}

export interface ServicePlan {
  name: string;
  bindingName?: string;
  parameters?: Record<string, unknown>;
}

export interface RoutePlan {
  /** As written. */
  text: string;
  /** Host and domain together; only the cluster knows which part is the domain: see splitHostname. */
  hostname: string;
  /** With its leading slash. */
  path?: string;
  port?: number;
  protocol?: 'http1' | 'http2' | 'tcp';
  options?: Record<string, unknown>;
}

export interface AppPlan {
  name: string;
  /** Absolute path of a folder, or of a zip, jar or war; left out for docker images and droplets. */
  path?: string;
  /** The path as the user wrote it, for messages. */
  pathAsGiven?: string;
  docker?: { image: string; username?: string };
  /** Absolute path of a finished droplet. */
  droplet?: string;
  lifecycle: 'buildpack' | 'docker';
  /** Empty: detect. */
  buildpacks?: string[];
  stack?: string;
  env: Record<string, string>;
  services: ServicePlan[];
  /** Empty: none named. */
  routes: RoutePlan[];
  /** Checked in this order: noRoute, routes, randomRoute, defaultRoute; the last two only for an app without routes. */
  noRoute: boolean;
  randomRoute: boolean;
  defaultRoute: boolean;
  processes: ProcessPlan[];
  sidecars: SidecarPlan[];
  features: Record<string, boolean>;
  /** null removes. */
  labels: Record<string, string | null>;
  annotations: Record<string, string | null>;
}

export interface PushPlan {
  /** Absolute path of the manifest that was read. */
  manifest?: { path: string; asGiven: string };
  apps: AppPlan[];
  rollout: RolloutOptions;
  start: boolean;
  wait: boolean;
  /** Only build, without a route or a start. */
  task: boolean;
  redactEnv: boolean;
  /** As the user typed them, for hints. */
  flags: PushFlags;
  /** Settings of the manifest that this push ignores, as `file:line:column: text`. */
  warnings: string[];
}

/** The parsed flags of a push. */
export interface PushFlags {
  name?: string | undefined;
  manifest?: string | undefined;
  noManifest?: boolean | undefined;
  /** `KEY=VALUE`. */
  vars?: string[] | undefined;
  varsFiles?: string[] | undefined;
  path?: string | undefined;
  dockerImage?: string | undefined;
  dockerUsername?: string | undefined;
  droplet?: string | undefined;
  buildpacks?: string[] | undefined;
  stack?: string | undefined;
  lifecycle?: string | undefined;
  /** `default` and `null` mean: use the detected command again. */
  command?: string | undefined;
  instances?: number | undefined;
  memoryMB?: number | undefined;
  diskQuotaMB?: number | undefined;
  logRateLimitBPS?: number | undefined;
  healthCheckType?: 'http' | 'port' | 'process' | undefined;
  endpoint?: string | undefined;
  timeoutSeconds?: number | undefined;
  noRoute?: boolean | undefined;
  randomRoute?: boolean | undefined;
  noStart?: boolean | undefined;
  noWait?: boolean | undefined;
  task?: boolean | undefined;
  strategy?: Strategy | undefined;
  maxInFlight?: number | undefined;
  instanceSteps?: string | undefined;
  redactEnv?: boolean | undefined;
  /** The place, as far as it was typed. */
  context?: string | undefined;
  org?: string | undefined;
  space?: string | undefined;
}
