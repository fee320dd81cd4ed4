// The seam between reconcilers and whatever runs instances: they ask here, never a pod. Another cluster's instances could answer as well.

import type { DeploymentFailure } from '../../lib/api/group.ts';
import type { InstanceStatus } from '../../lib/api/types.generated.ts';
import type { LogEnds } from '../../lib/kube/lines.ts';

/** Why an instance does not serve. */
export interface Problem {
  reason: DeploymentFailure;
  /** One sentence with the cause as the cluster gives it. */
  message: string;
  /** Nothing but a change helps: the generation may be called failed. Otherwise it may still pass by itself. */
  final: boolean;
  /** Final because of the time that has passed, not because of something that happened. */
  byTime?: boolean;
  container?: string;
  exitCode?: number;
  /** Milliseconds (wall clock) after which the judgement can change though nothing else happens. */
  lookAgainMs?: number;
}

export interface Instance {
  index: number;
  generation: string;
  pod: string;
  uid: string;
  /** Uid of what made it. */
  owner?: string;
  state: InstanceStatus['state'];
  /** RFC 3339: since when the state holds. */
  since?: string;
  /** Answers its readiness check and is not about to end. */
  ready: boolean;
  /** Milliseconds of the wall clock at which it became ready. */
  readySince?: number;
  /** Its end has begun. */
  ending: boolean;
  /** Milliseconds of the wall clock at which it should be gone at the latest; known once its end has begun. */
  goneBy?: number;
  created: number;
  /** Milliseconds at which its process was started last. */
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
  /** Seconds that the app has to answer its first check. */
  startSeconds: number;
  /** Port that it should listen on; undefined: no check. */
  port?: number;
  /** Path of an http check; undefined: a connection is enough. */
  path?: string;
  /** As the cluster writes it, such as `128Mi`. */
  memory?: string;
  /** Process type of an app that buildpacks built; undefined for images of others. */
  builtProcess?: string;
}

export interface Instances {
  /** All instances of a process, of every generation. */
  of(ns: string, processGuid: string, expectations: (generation: string) => Expectations): Instance[];
  /** Why instances that should exist do not: quota, policies. Undefined when nothing is known. */
  missing(ns: string, generation: string, setName: string): Promise<Problem | undefined>;
  /** What the last failing check of an instance said, such as `connection refused` or a status code, and when (milliseconds). */
  lastCheck(ns: string, instance: Instance): Promise<{ message: string; at: number } | undefined>;
  /** Since when what is known of instances has been kept up without a gap, in milliseconds of the wall clock. */
  steadySince(): number;
  /** Takes it for gone although nobody confirms its end: what ran it does not answer any more. */
  abandon(ns: string, instance: Instance): Promise<void>;
  /** First and last lines of a failing instance's log; empty when there are none. */
  logEnds(ns: string, instance: Instance): Promise<LogEnds>;
}
