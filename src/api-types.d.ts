// Types of `@kf/cli/api`, shipped as dist/api.d.ts. A test compares them with the exports of src/api.ts.

import type { Command } from '@oclif/core';

export { Args, Flags } from '@oclif/core';

/** Grows with every change that a plugin could notice. */
export declare const apiVersion: number;

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: { name?: string; namespace?: string; uid?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
}

/** Identifies a kind of objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never present at run time. */
  readonly wireType?: T;
}

/** Any kind of the cluster; the empty group is the core one. */
export declare function resource<T extends KubeObject = KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced?: boolean,
): ResourceType<T>;

/** A kind whose objects the API server computes for each answer, such as metrics: they have no uid. */
export declare function computedResource<T extends KubeObject = KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced?: boolean,
): ResourceType<T>;

export interface ListOptions {
  /** Left out: all namespaces. */
  ns?: string;
  labelSelector?: string;
  fieldSelector?: string;
  signal?: AbortSignal;
}

/** The API server, with the user's own rights. */
export interface Cluster {
  readonly identity: { readonly server: string; readonly context: string };
  get<T extends KubeObject>(type: ResourceType<T>, ns: string | undefined, name: string): Promise<T | undefined>;
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<{ items: T[]; resourceVersion: string }>;
}

export interface NameAndGuid {
  name: string;
  guid: string;
}

/** The target of a command. A space's GUID is its namespace. */
export interface Session {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
  /** The user as the API server names them. */
  readonly user: string;
}

export interface SpaceSession extends Session {
  readonly org: NameAndGuid;
  readonly space: NameAndGuid;
}

export interface KfErrorOptions {
  /** Commands or facts that help, one per line. */
  hints?: string[];
  exitCode?: number;
  /** Facts for programs: `error.details` of `--json`. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

/** Classes of failure: `error.code` of `--json`. */
export type FailureClass = 'usage' | 'not-found' | 'forbidden' | 'conflict' | 'timeout' | 'unreachable' | 'failed';

/** A failure that a user can act on: printed without a stack. */
export declare class KfError extends Error {
  constructor(code: FailureClass, message: string, options?: KfErrorOptions);
}

export type Cell = string | { text: string; style: 'bold' | 'name' | 'bad' };
export type Block =
  | { type: 'line'; text: string }
  | { type: 'table'; rows: Cell[][]; header: boolean }
  | { type: 'pairs'; rows: [key: string, value: Cell][] };

export declare const line: (text?: string) => Block;
export declare const pairs: (...rows: [key: string, value: Cell][]) => Block;
export declare const table: (header: string[], rows: Cell[][]) => Block;

/**
 * An oclif command with kf's command line, target, streams and `--json`.
 * @typeParam T the type of the result of `run`, which `--json` prints as `result`
 */
export declare abstract class KfCommand<T> extends Command {
  static seeAlso: string[];
  abstract run(): Promise<T>;
  /** The cluster, without a target. */
  protected clusterSession(): Promise<Session>;
  /** The cluster with the targeted org and space. */
  protected spaceSession(): Promise<SpaceSession>;
  protected readonly signal: AbortSignal;
  /** A line of text on stdout: `` this.say`Getting apps of ${org}...` ``. */
  protected say(parts: TemplateStringsArray, ...names: string[]): void;
  /** The first line as in cf: `` this.announce`Deleting app ${name}` `` adds org, space and user. */
  protected announce(parts: TemplateStringsArray, ...names: string[]): void;
  /** `OK` and an empty line. */
  protected ok(): void;
  protected print(blocks: readonly Block[]): void;
  /** Asks yes or no. @param otherwise the flag that answers yes beforehand */
  protected confirm(question: string, otherwise?: string): Promise<boolean>;
}
