// The interface between the reconcilers and what runs instances. Reconcilers never read a pod: instances could run in another cluster as well.

import type { CauseCode } from '../../lib/api/causes.ts';
import type { DeploymentFailure } from '../../lib/api/group.ts';
import type { InstanceStatus } from '../../lib/api/types.generated.ts';
import type { LogEnds } from '../../lib/kube/lines.ts';

/** Why an instance does not serve. */
export interface Problem {
  reason: DeploymentFailure;
  cause: CauseCode;
  /** One sentence with the cause as the cluster gives it. */
  message: string;
  /** True: the problem does not pass by itself, and the generation may count as failed. False: it may still pass. */
  final: boolean;
  /** The problem is final because it has lasted too long, not because something happened. */
  byTime?: boolean;
  /** It is one of the run that goes on, not of one that has ended. */
  ofPresentRun?: true;
  container?: string;
  exitCode?: number;
  /** After so many milliseconds the problem may be final although no object has changed. */
  lookAgainMs?: number;
}

export interface Instance {
  index: number;
  generation: string;
  pod: string;
  uid: string;
  /** Uid of its controller: the StatefulSet that made it. */
  owner?: string;
  state: InstanceStatus['state'];
  /** When it came into its state, as RFC 3339. */
  since?: string;
  /** It answers its readiness check, and its end has not begun. */
  ready: boolean;
  /** Its node takes no new instances, since its operator empties it. */
  leaving?: boolean;
  /** Milliseconds by the API server's clock at which it became ready. */
  readySince?: number;
  /** Its end has begun. */
  ending: boolean;
  /** Milliseconds by the API server's clock at which it should be gone at the latest; known once its end has begun. */
  goneBy?: number;
  /** Milliseconds by the API server's clock at which it was made. */
  created: number;
  /** Milliseconds by the API server's clock at which its process was started last. */
  startedAt?: number;
  restarts: number;
  node?: string;
  address?: string;
  details?: string;
  reason?: string;
  exitCode?: number;
  problem?: Problem;
}

/** What is known of the generation when its instances are judged. */
export interface Expectations {
  /** Seconds within which the app has to answer its first check. */
  startSeconds: number;
  /** A run that its start check has ended, since nothing answered, lasted no longer than this; undefined: no check. */
  longestStartSeconds?: number;
  /** Port that it should listen on; undefined: no check. */
  port?: number;
  /** Path of an http check; undefined: a connection is enough. */
  path?: string;
  /** The check by which it gets requests; undefined: none. It fails when it has had no success for this time. */
  readiness?: { port: number; path?: string; failsAfterSeconds: number };
  /** As the cluster writes it, such as `128Mi`. */
  memory?: string;
  /** The same of its sidecars, by the names of their containers. */
  sidecarMemory?: Readonly<Record<string, string>>;
  /** Process type of an app that buildpacks built; undefined for images of others. */
  builtProcess?: string;
}

export interface Instances {
  /** All instances of a process, of every generation. */
  of(ns: string, processGuid: string, expectations: (generation: string) => Expectations): Instance[];
  /** Why instances of a StatefulSet do not exist although they should: a quota, a policy. Undefined when no cause is known. */
  missing(ns: string, setName: string): Promise<Problem | undefined>;
  /**
   * What the last failing check of an instance said, such as `connection refused` or a status code, and when (milliseconds). If its process was
   * started again, the last check of the process before, unless its problem is one of the present run.
   */
  lastCheck(ns: string, instance: Instance): Promise<{ message: string; at: number } | undefined>;
  /**
   * The problem of an instance by what the API server has of it now: what is known here may be older. Undefined when it has none, or is gone, or another
   * one has its name.
   */
  problemNow(ns: string, instance: Instance, expectations: Expectations): Promise<Problem | undefined>;
  /** Milliseconds by the API server's clock since when every change of an instance has been seen; before, some may have been missed. */
  steadySince(): number;
  /** Removes an instance although its end is not confirmed, because its node does not answer any more. */
  abandon(ns: string, instance: Instance): Promise<void>;
  /** First and last lines of the container of an instance that fails, which may be a sidecar; empty when there are none. */
  logEnds(ns: string, instance: Instance): Promise<LogEnds>;
}
