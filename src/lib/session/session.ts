// One command's view of where it works: the cluster, the pinned target, org and space by GUID, the installation's facts.

import { group, kinds, places } from '../api/group.ts';
import { configMapType } from '../api/core.ts';
import { parseKfInfo, requireCompatible, type KfInfo } from '../api/kf-info.ts';
import { KfError, messageOf } from '../errors.ts';
import { timeoutFrom } from '../cf/timeouts.ts';
import { connect } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isMissingKind } from '../kube/errors.ts';
import { readKubeconfig } from '../kube/kubeconfig.ts';
import type { Report } from '../ops/events.ts';
import { kfVersion } from '../version.ts';
import { findOrg, findSpace } from './places.ts';
import {
  readStored,
  saveState,
  whereBeside,
  whyNotStored,
  withoutStateHint,
  type NameAndGuid,
  type StoredTarget,
  type TargetState,
} from './state.ts';
import { findUser, hintOfOtherUser, rememberUser, type Who } from './who.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface SessionOptions {
  needs: 'cluster' | 'org' | 'space';
  env: Env;
  signal: AbortSignal;
  /** The name kf was started as, for hints. */
  bin: string;
  report: Report;
  /** Takes the lines of `-v` and CF_TRACE=true. */
  trace: (line: string) => void;
  /** `--context`, `--org`, `--space` or their variables. */
  context?: string | undefined;
  org?: string | undefined;
  space?: string | undefined;
  /** Another of the kubeconfig's users than the remembered one or the context's own. */
  kubeconfigUser?: string | undefined;
  /** For commands that set the target: a pinned context that changed is no error. */
  ignorePin?: boolean | undefined;
}

export interface Session {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
  readonly report: Report;
  readonly bin: string;
  readonly env: Env;
  /** Namespace of orgs and domains. */
  readonly root: string;
  /** The API server's name of the user, in every sentence and in what is written. */
  readonly user: string;
  readonly org?: NameAndGuid;
  readonly space?: NameAndGuid;
  /** What the installation says about itself; read once. @throws KfError `not-found` when kf is not set up */
  info(): Promise<KfInfo>;
  /**
   * The user name for `kf/changed-by`. Every first write asks for it, so this is also where a kf that does not fit the installation ends.
   * @throws KfError `conflict`
   */
  changedBy(): Promise<string>;
  /** Fills org and space from flags, state or what setup made, as far as there are any. Returns why what setup made does not serve, where that is not plain. */
  findPlaceIfAny(): Promise<string | undefined>;
  /** The state as it would be written. */
  readonly state: TargetState;
  /** The kubeconfig knows more clusters than this one. */
  hasSeveralClusters(): Promise<boolean>;
  /** What an error of this session means to people: kf is not set up, or the remembered space is gone. */
  explain(error: KfError): Promise<KfError>;
  /** Asks whether the remembered space still exists; an empty answer may mean that it does not. @throws KfError `not-found` */
  assertPlaceExists(): Promise<void>;
  /** Remembers a new target. @throws KfError `failed` when it cannot: the next command would work somewhere else */
  save(state: TargetState): void;
  /** The same for a command that is about something else: a warning when it cannot. */
  saveOrWarn(state: TargetState): void;
  close(): void;
}

export interface OrgSession extends Session {
  readonly org: NameAndGuid;
}

export interface SpaceSession extends OrgSession {
  readonly space: NameAndGuid;
}

/** The stored state as far as it speaks of this cluster. @throws KfError when the pinned context leads elsewhere now */
function pinned(stored: TargetState, cluster: Cluster, options: SessionOptions): TargetState {
  const { context, server } = cluster.identity;
  if (stored.context !== context) return { context, server };
  if (stored.server === server || stored.server === undefined) return { ...stored, server };
  if (options.ignorePin === true || options.context !== undefined) return { context, server };
  throw new KfError('conflict', `The target is the cluster at ${stored.server}, but context '${context}' now leads to ${server}.`, {
    hints: [`${options.bin} target -o ORG -s SPACE`, `${options.bin} api ${context}`],
  });
}

/** A remembered context that this kubeconfig lacks: where the name comes from, and how to take another. */
function explainPin(error: KfError, stored: TargetState, bin: string): KfError {
  const { missingContext } = error.details;
  if (missingContext === undefined || missingContext !== stored.context) return error;
  return new KfError('usage', `The target is context '${stored.context}'. ${error.message}`, {
    hints: [`${bin} api CONTEXT`, `${bin} api --unset`, ...error.hints],
    details: error.details,
  });
}

const noOrg = (bin: string, why?: string): KfError =>
  new KfError('usage', `No org targeted, use '${bin} target -o ORG' to target an org.`, {
    hints: why === undefined ? [] : [why, withoutStateHint],
  });
const noSpace = (bin: string): KfError => new KfError('usage', `No space targeted, use '${bin} target -s SPACE' to target a space.`);

/** Which cluster was pinned is not known: any other could be the wrong one. */
function assertReadable({ problem }: StoredTarget, options: SessionOptions): void {
  if (problem === undefined || options.ignorePin === true || options.context !== undefined) return;
  throw new KfError('conflict', `The saved target cannot be used: ${problem}`, {
    hints: [`${options.bin} target -o ORG -s SPACE`, withoutStateHint],
  });
}

export async function openSession(options: SessionOptions): Promise<Session> {
  const { env } = options;
  const target = readStored(env);
  assertReadable(target, options);
  const stored = target.state;
  const context = options.context ?? stored.context;
  const remembered = options.context === undefined || options.context === stored.context ? stored.kubeconfigUser : undefined;
  const userOverride = options.kubeconfigUser ?? remembered;
  const cluster = await connect({
    env,
    userAgent: `kf/${kfVersion()}`,
    connectTimeoutMs: timeoutFrom(env, 'CF_DIAL_TIMEOUT'),
    context,
    user: userOverride,
  }).catch((error: unknown) => {
    throw options.context === undefined && error instanceof KfError ? explainPin(error, stored, options.bin) : error;
  });
  const session = new OpenSession(await withTrace(cluster, options), { ...target, state: pinned(stored, cluster, options) }, options);
  try {
    await session.begin();
    return session;
  } catch (error) {
    const explained = error instanceof KfError ? await session.explain(error) : error;
    session.close();
    throw explained;
  }
}

async function withTrace(cluster: Cluster, { env, report, trace }: SessionOptions): Promise<Cluster> {
  if (env['CF_TRACE'] === undefined) return cluster;
  const { traced, traceSink } = await import('./trace.ts');
  const sink = traceSink(env, { print: trace, warn: (message) => report({ type: 'warning', message }) });
  return sink === undefined ? cluster : traced(cluster, sink);
}

class OpenSession implements Session {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
  readonly report: Report;
  readonly bin: string;
  readonly env: Env;
  readonly root: string;
  state: TargetState;
  org?: NameAndGuid;
  space?: NameAndGuid;
  readonly #options: SessionOptions;
  /** Where the place comes from: looked up by name, from the stored target, or what setup made. Only the first is sure to be there. */
  #placeFrom: 'names' | 'target' | 'defaults';
  readonly #isUntouched: boolean;
  #info: Promise<KfInfo> | undefined;
  #who: Who;

  constructor(cluster: Cluster, { state, isUntouched }: StoredTarget, options: SessionOptions) {
    this.cluster = cluster;
    this.state = state;
    this.#isUntouched = isUntouched;
    this.#who = { name: cluster.identity.user, isRemembered: false };
    this.signal = options.signal;
    this.report = options.report;
    this.bin = options.bin;
    this.env = options.env;
    this.root = options.env['KF_ROOT_NAMESPACE'] ?? places.rootNamespace;
    this.#options = options;
    if (state.org !== undefined) this.org = state.org;
    if (state.space !== undefined) this.space = state.space;
    this.#placeFrom = state.space === undefined ? 'names' : 'target';
  }

  get user(): string {
    return this.#who.name;
  }

  info(): Promise<KfInfo> {
    this.#info ??= this.#readInfo();
    return this.#info;
  }

  async changedBy(): Promise<string> {
    requireCompatible(await this.info(), kfVersion());
    if (this.#who.cause !== undefined) throw this.#who.cause;
    return this.#who.name;
  }

  save(state: TargetState): void {
    this.state = state;
    const beside = whereBeside(this.env);
    const problem = saveState(this.env, state);
    if (problem !== undefined) throw new KfError('failed', problem, { hints: [withoutStateHint] });
    if (beside !== undefined) this.report({ type: 'warning', message: beside });
  }

  saveOrWarn(state: TargetState): void {
    try {
      this.save(state);
    } catch (error) {
      this.report({ type: 'warning', message: `${messageOf(error)} ${withoutStateHint}` });
    }
  }

  async hasSeveralClusters(): Promise<boolean> {
    return (await readKubeconfig({ env: this.env })).clusters.size > 1;
  }

  async explain(error: KfError): Promise<KfError> {
    if (isMissingKind(error) && error.message.includes(group)) return notSetUp(this);
    if (error.code !== 'forbidden' && error.code !== 'not-found') return error;
    if (error.code === 'forbidden') {
      const otherUser = await hintOfOtherUser(this.env, this.cluster, this.#who, this.signal);
      if (otherUser !== undefined) error.hints.push(otherUser);
      if (this.#placeFrom === 'defaults') error.hints.push(`${this.bin} target -o ORG -s SPACE`);
    }
    try {
      // The kinds alone, without the installation's facts: a setup that was cut off, or an uninstall that kept the data.
      if (error.code === 'not-found') await this.info();
      await this.assertPlaceExists();
      return error;
    } catch (found) {
      return found instanceof KfError && found.code === 'not-found' ? found : error;
    }
  }

  async assertPlaceExists(): Promise<void> {
    const { org, space } = this;
    if (org === undefined || space === undefined || this.#placeFrom === 'names') return;
    const found = await this.cluster.get(kinds.space, org.guid, space.guid, this.signal);
    if (found !== undefined && found.metadata.deletionTimestamp === undefined) return;
    const whose = this.#placeFrom === 'defaults' ? `The space '${space.name}' that setup made in` : `The targeted space '${space.name}' of`;
    throw new KfError('not-found', `${whose} org '${org.name}' is not there any more.`, {
      hints: [`${this.bin} target -o ${org.name} -s SPACE`],
    });
  }

  close(): void {
    this.cluster.close();
  }

  /** Finds the user's name, and the place at the same time where the command needs one. */
  async begin(): Promise<void> {
    const [who] = await Promise.all([
      findUser(this.cluster, this.state, this.signal),
      this.#options.needs === 'cluster' ? undefined : this.#findPlace(),
    ]);
    this.#who = who;
    if (who.isRemembered || who.cause !== undefined) return;
    this.state = { ...this.state, user: who.name, userOf: this.cluster.identity.user };
    rememberUser(this.env, this.cluster, who.name);
  }

  /** @throws KfError in cf's words when what the command needs is not targeted */
  async #findPlace(): Promise<void> {
    const { needs, bin } = this.#options;
    const whyNoDefault = await this.findPlaceIfAny();
    if (this.org === undefined) throw noOrg(bin, whyNoDefault);
    if (needs === 'space' && this.space === undefined) throw noSpace(bin);
  }

  async findPlaceIfAny(): Promise<string | undefined> {
    const { org, space } = this.#options;
    const whyNoDefault =
      this.org === undefined && (org === undefined || space !== undefined) ? await this.#takeDefaults(org, space) : undefined;
    if (org !== undefined && org !== this.org?.name) {
      this.org = await findOrg(this, org);
      this.#placeFrom = 'names';
      delete this.space;
    }
    if (this.org === undefined) return whyNoDefault;
    // create-space with KF_SPACE naming the space that is to be: a command about the org asks for no space.
    if (this.#options.needs !== 'org' && space !== undefined && space !== this.space?.name) {
      this.#placeFrom = 'names';
      this.space = await findSpace(this, this.org, space);
    }
    return undefined;
  }

  /**
   * The org and space that setup made, if this user can see them. They serve who never chose a target: after a target that failed, or where none
   * can be remembered, a command would work somewhere else than its user believes. Names that are given are found without a look-up if they are theirs.
   * @returns why they do not serve, where that is not plain
   */
  async #takeDefaults(orgName: string | undefined, spaceName: string | undefined): Promise<string | undefined> {
    if (orgName === undefined && !this.#isUntouched) return undefined;
    const { defaults } = await this.info();
    if (defaults === undefined) return undefined;
    const { org, space } = defaults;
    if (orgName !== undefined && (orgName !== org.name || spaceName !== space.name)) return undefined;
    if (orgName === undefined) {
      const cause = whyNotStored(this.env, this.state);
      if (cause !== undefined) return `Org '${org.name}', space '${space.name}' do not serve: no target can be remembered (${cause}).`;
    }
    const found = await this.#findDefaults(org, space);
    if (found === undefined) return undefined;
    this.org = found.org;
    this.space = found.space;
    this.#placeFrom = 'defaults';
    return undefined;
  }

  /** Their GUIDs as setup told them, else looked up; nothing, when this user cannot see them. */
  async #findDefaults(
    org: { name: string; guid?: string },
    space: { name: string; guid?: string },
  ): Promise<{ org: NameAndGuid; space: NameAndGuid } | undefined> {
    if (isFound(org) && isFound(space)) return { org, space };
    try {
      const found = await findOrg(this, org.name);
      return { org: found, space: await findSpace(this, found, space.name) };
    } catch (error) {
      if (!(error instanceof KfError) || (error.code !== 'not-found' && error.code !== 'forbidden')) throw error;
      return undefined;
    }
  }

  async #readInfo(): Promise<KfInfo> {
    const map = await this.cluster.get(configMapType, this.root, places.info, this.signal);
    const text = map?.data?.[places.infoKey];
    if (text === undefined) throw notSetUp(this);
    return parseKfInfo(text);
  }
}

const isFound = (place: { name: string; guid?: string }): place is NameAndGuid => place.guid !== undefined;

/** kf is not installed in that cluster. */
export function notSetUp({ cluster, bin }: Pick<Session, 'cluster' | 'bin'>): KfError {
  const { context, server } = cluster.identity;
  return new KfError('not-found', `kf is not set up in the cluster at ${server} (context '${context}').`, {
    hints: [`${bin} setup --context ${context}`, 'kubectl config get-contexts'],
  });
}
