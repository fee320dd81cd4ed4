// A part of an installation: its objects, what it needs, and how it is checked and removed. Setup and uninstall know parts only, and in which order they go.

import type { KubeObject } from '../../api/object.ts';
import { BugError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ControllerPrograms } from '../../../templates/setup/controller.ts';
import type { SetupPlan } from '../../../templates/setup/options.ts';
import type { InstallStep, Report } from '../events.ts';
import type { PlannedChange } from './applier.ts';
import type { NetworkState } from './network-proof.ts';
import type { ClusterFacts } from './preflight.ts';
import type { ReachResult } from './proofs.ts';
import type { Removal } from './removal.ts';
import type { SetupRequest } from './request.ts';

/** What objects are made from. */
export interface PartInput {
  plan: SetupPlan;
  programs: ControllerPrograms;
  /** What the cluster brings itself. */
  served: Pick<ClusterFacts, 'hasGatewayApi' | 'hasMutatingPolicies'>;
}

/** A setup that is under way. */
export interface SetupRun {
  cluster: Cluster;
  report: Report;
  signal?: AbortSignal;
  plan: SetupPlan;
  /** What the operator asks for now, by flags and file. */
  asked: SetupRequest;
  /** What setup found of a part, before it wrote anything. */
  changes: (part: string) => PlannedChange[];
}

/** What the checks of an installation find out. */
export interface Proofs {
  network: NetworkState;
  reach: ReachResult;
}

export interface Part {
  name: string;
  /** Parts that must be installed and ready before this one is applied; uninstall removes them after it. */
  requires: readonly string[];
  /** The step that users see while it is applied; its name unless told. */
  step?: InstallStep;
  objects: (input: PartInput) => KubeObject[] | Promise<KubeObject[]>;
  /** Not among the objects that a dry run prints. */
  unprinted?: boolean;
  /** Objects of other choices that this part offers. An earlier setup may have installed them, and they stay when the choice changes. */
  alternatives?: (input: PartInput) => KubeObject[];
  before?: (run: SetupRun) => Promise<void>;
  /** Waits until it is ready. Parts that do not require it are applied meanwhile. */
  after?: (run: SetupRun) => Promise<void>;
  /** Begins a check when the part is applied. The function that it returns is called when everything is installed, for the outcome. */
  prove?: (run: SetupRun) => () => Promise<Partial<Proofs>>;
  /** Removes it from the cluster. The function that it may return waits, after all parts have been removed. */
  remove?: (removal: Removal) => Promise<void | (() => Promise<void>)>;
}

/**
 * The parts in the order in which they are installed: each after those that it requires, and else by name.
 * @throws BugError naming a part that is required and not there, or those that require each other
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
