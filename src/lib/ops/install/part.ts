// A part of an installation: its objects, its requirements, and how it is checked and removed. Setup and uninstall only know parts and their
// order.

import type { KubeObject } from '../../api/object.ts';
import { BugError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ControllerPrograms } from '../../../templates/setup/controller.ts';
import type { SetupPlan } from '../../../templates/setup/options.ts';
import type { InstallStep, Report } from '../../events.ts';
import type { PlannedChange } from './applier.ts';
import type { NetworkState } from './network-proof.ts';
import type { ClusterFacts } from './preflight.ts';
import type { ReachResult } from './proofs.ts';
import type { Removal } from './removal.ts';
import type { SetupRequest } from './request.ts';

/** The input from which a part makes its objects. */
export interface PartInput {
  plan: SetupPlan;
  programs: ControllerPrograms;
  /** Features of the cluster itself. */
  served: Pick<ClusterFacts, 'hasGatewayApi' | 'hasMutatingPolicies'>;
}

/** A running setup. */
export interface SetupRun {
  cluster: Cluster;
  report: Report;
  signal?: AbortSignal;
  plan: SetupPlan;
  /** The operator's request, from flags and file. */
  asked: SetupRequest;
  /** The planned changes of a part, made before anything is written. */
  changes: (part: string) => PlannedChange[];
}

/** Results of the checks of an installation. */
export interface Proofs {
  network: NetworkState;
  reach: ReachResult;
}

export interface Part {
  name: string;
  /** Parts that must be installed and ready before this one is applied; uninstall removes them after it. */
  requires: readonly string[];
  /** The step that users see while the part is applied; default: the part's name. */
  step?: InstallStep;
  objects: (input: PartInput) => KubeObject[] | Promise<KubeObject[]>;
  /** The dry run does not print its objects. */
  unprinted?: boolean;
  /** Objects of other choices that this part has. An earlier setup may have installed them, and they stay when the choice changes. */
  alternatives?: (input: PartInput) => KubeObject[];
  before?: (run: SetupRun) => Promise<void>;
  /** Waits until the part is ready. Parts that do not require it are applied in the meantime. */
  after?: (run: SetupRun) => Promise<void>;
  /** Starts a check when the part is applied. After everything is installed, the returned function is called for the result. */
  prove?: (run: SetupRun) => () => Promise<Partial<Proofs>>;
  /** Removes the part from the cluster. It may return a function that waits; that one is called after all parts have been removed. */
  remove?: (removal: Removal) => Promise<void | (() => Promise<void>)>;
}

/**
 * The parts in the order of installation: each after those that it requires, otherwise by name.
 * @throws BugError naming a required part that does not exist, or parts that require each other
 */
export function inOrder<T extends Pick<Part, 'name' | 'requires'>>(parts: readonly T[]): T[] {
  const names = new Set(parts.map(({ name }) => name));
  for (const { name, requires } of parts) {
    const unknown = requires.find((required) => !names.has(required));
    if (unknown !== undefined) throw new BugError(`The part '${name}' of setup requires '${unknown}', which is no part.`);
  }
  const left = parts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const ordered: T[] = [];
  while (left.length > 0) {
    const isReady = ({ requires }: T): boolean => requires.every((required) => ordered.some(({ name }) => name === required));
    const at = left.findIndex(isReady);
    if (at < 0) throw new BugError(`Parts of setup require each other: ${left.map(({ name }) => name).join(', ')}.`);
    ordered.push(...left.splice(at, 1));
  }
  return ordered;
}
