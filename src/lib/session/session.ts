// The session of one command: the cluster, the saved target, org and space by GUID, and the description of the installation.

import { group, kinds, places } from '../api/group.ts';
import { configMapType } from '../api/core.ts';
import { parseKfInfo, requireCompatible, type KfInfo } from '../api/kf-info.ts';
import { KfError, messageOf } from '../errors.ts';
import { timeoutFrom } from '../cf/timeouts.ts';
import { connect } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isMissingKind, isTerminating } from '../kube/errors.ts';
import { readKubeconfig } from '../kube/kubeconfig.ts';
import { ServerClock } from '../kube/server-clock.ts';
import type { Report } from '../events.ts';
import { kfVersion } from '../version.ts';
import { checkingWrites } from './checked-writes.ts';
import { findOrg, findSpace } from './places.ts';
import { assertReadable, explainPin, pinned, type PinOptions } from './pin.ts';
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

export interface SessionOptions extends PinOptions {
  needs: 'cluster' | 'org' | 'space';
  env: Env;
  signal: AbortSignal;
  report: Report;
  /** Receives the lines of `-v` and CF_TRACE=true. */
  trace: (line: string) => void;
  /** `--org` and `--space`, or their variables. */
  org?: string | undefined;
  space?: string | undefined;
  /** A user of the kubeconfig in place of the saved one or the context's own. */
  kubeconfigUser?: string | undefined;
  /** For commands that install kf, or check the releases themselves. */
  acceptsAnyRelease?: boolean | undefined;
}

export interface Session {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
  readonly report: Report;
  readonly bin: string;
  readonly env: Env;
  /** Milliseconds by the clock of the API server, for differences to the times of objects. */
  readonly now: () => number;
  /** Namespace of orgs and domains. */
  readonly root: string;
  /** The API server's name of the user, for messages and annotations. */
  readonly user: string;
  readonly org?: NameAndGuid;
  readonly space?: NameAndGuid;
  /** The description of the installation; read once. @throws KfError `not-found` when kf is not set up */
  info(): Promise<KfInfo>;
  /**
   * The user name for `kf/changed-by`. Most commands ask for it before they write, so a kf whose version does not fit the installation ends here; else
   * at the first write.
   * @throws KfError `conflict`
   */
  changedBy(): Promise<string>;
  /**
   * Sets org and space from flags, state or setup's defaults, as far as they exist. Returns why the defaults cannot be used, if that is not
   * obvious.
   */
  findPlaceIfAny(): Promise<string | undefined>;
  /** The state that would be saved. */
  readonly state: TargetState;
  /** The kubeconfig has other clusters too. */
  hasSeveralClusters(): Promise<boolean>;
  /** Explains an error of this session to users: kf is not set up, or the saved space is gone. */
  explain(error: KfError): Promise<KfError>;
  /** Checks that the saved space still exists; an empty answer may mean that it does not. @throws KfError `not-found` */
  assertPlaceExists(): Promise<void>;
  /** Saves a new target. @throws KfError `failed` when that is not possible: the next command would work somewhere else */
  save(state: TargetState): void;
  /** The same for a command with another purpose: only a warning on failure. */
  saveOrWarn(state: TargetState): void;
  close(): void;
}

export interface OrgSession extends Session {
  readonly org: NameAndGuid;
}

export interface SpaceSession extends OrgSession {
  readonly space: NameAndGuid;
}

const noOrg = (bin: string, why?: string): KfError =>
  new KfError('usage', `No org targeted, use '${bin} target -o ORG' to target an org.`, {
    hints: why === undefined ? [] : [why, withoutStateHint],
  });
const noSpace = (bin: string): KfError => new KfError('usage', `No space targeted, use '${bin} target -s SPACE' to target a space.`);

export async function openSession(options: SessionOptions): Promise<Session> {
  const { env } = options;
  const target = readStored(env);
  assertReadable(target, options);
  const stored = target.state;
  const context = options.context ?? stored.context;
  const remembered = options.context === undefined || options.context === stored.context ? stored.kubeconfigUser : undefined;
  const userOverride = options.kubeconfigUser ?? remembered;
  const clock = new ServerClock();
  const cluster = await connect({
    env,
    onDate: clock.observe,
    userAgent: `kf/${kfVersion()}`,
    connectTimeoutMs: timeoutFrom(env, 'CF_DIAL_TIMEOUT'),
    context,
    user: userOverride,
  }).catch((error: unknown) => {
    throw options.context === undefined && error instanceof KfError ? explainPin(error, stored, options.bin) : error;
  });
  const state = pinned(stored, cluster, options);
  const session = new OpenSession(await withTrace(cluster, options), { ...target, state }, { ...options, now: clock.now });
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

/** A full quota refused an object of a command, or an instance of an app. */
const isOfQuota = ({ code, details }: KfError): boolean => code === 'quota' || details['reason'] === 'QuotaExceeded';

class OpenSession implements Session {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
  readonly report: Report;
  readonly bin: string;
  readonly env: Env;
  readonly now: () => number;
  readonly root: string;
  state: TargetState;
  org?: NameAndGuid;
  space?: NameAndGuid;
  readonly #options: SessionOptions;
  /** The source of the org and space: names that were looked up, the saved target, or setup's defaults. Only looked-up ones certainly exist. */
  #placeFrom: 'names' | 'target' | 'defaults';
  readonly #isUntouched: boolean;
  #info: Promise<KfInfo> | undefined;
  #who: Who;

  constructor(cluster: Cluster, { state, isUntouched }: StoredTarget, options: SessionOptions & Pick<Session, 'now'>) {
    this.cluster = options.acceptsAnyRelease === true ? cluster : checkingWrites(cluster, () => this.#assertCompatible());
    this.state = state;
    this.#isUntouched = isUntouched;
    this.#who = { name: cluster.identity.user, isRemembered: false };
    this.signal = options.signal;
    this.report = options.report;
    this.bin = options.bin;
    this.env = options.env;
    this.now = options.now;
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

  async #assertCompatible(): Promise<void> {
    requireCompatible(await this.info(), kfVersion());
  }

  async changedBy(): Promise<string> {
    await this.#assertCompatible();
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
    if (isOfQuota(error) && this.space !== undefined) return (await import('./quota-refusal.ts')).nameQuota(this, this.space.guid, error);
    if (error.code !== 'forbidden' && error.code !== 'not-found') return error;
    if (isTerminating(error) && (await import('./leaving-place.ts')).nameLeaving(this, error)) return error;
    if (error.code === 'forbidden') {
      (await import('./missing-right.ts')).nameRights(this, error);
      const otherUser = await hintOfOtherUser(this.env, this.cluster, this.#who, this.signal);
      if (otherUser !== undefined) error.hints.push(otherUser);
      if (this.#placeFrom === 'defaults') error.hints.push(`${this.bin} target -o ORG -s SPACE`);
    }
    try {
      // Only the kinds exist, without kf-info: after an interrupted setup, or an uninstall that kept the data.
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
    throw new KfError('not-found', `${whose} org '${org.name}' does not exist any more.`, {
      hints: [`${this.bin} target -o ${org.name} -s SPACE`],
    });
  }

  close(): void {
    this.cluster.close();
  }

  /** Finds the user's name, and at the same time org and space if the command needs them. */
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

  /** @throws KfError in cf's words when org or space is needed and not targeted */
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
    // In create-space, KF_SPACE may name the new space; a command about the org needs no space.
    if (this.#options.needs !== 'org' && space !== undefined && space !== this.space?.name) {
      this.#placeFrom = 'names';
      this.space = await findSpace(this, this.org, space);
    }
    return undefined;
  }

  /**
   * Uses the org and space that setup created, if this user can see them. They are only for users who never chose a target: after a failed target,
   * or when none can be saved, a command would otherwise work in another space than its user expects. Given names that equal the defaults need no
   * look-up.
   * @returns why they cannot be used, if that is not obvious
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

  /** Their GUIDs from kf-info, otherwise looked up; undefined when this user cannot see them. */
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
