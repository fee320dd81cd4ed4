// The common base of all commands: cf's command-line syntax, the target, the two streams, JSON, interruption.

import { Command } from '@oclif/core/command';
import type { Input, ParserOutput } from '@oclif/core/interfaces';
import { declaredBy, helpSubject } from './declared.ts';
import { globalFlags, typedPlace } from './flags.ts';
import type { Frame, Program } from './frame.ts';
import { readDeclared } from './lib/cf/definitions.ts';
import type { GivenPlace } from './lib/cf/same-place.ts';
import { timeoutWarnings } from './lib/cf/timeouts.ts';
import { wantsHelp } from './lib/cf/usage.ts';
import { defined } from './lib/defined.ts';
import type { KfError } from './lib/errors.ts';
import type { Report } from './lib/events.ts';
import type { findApp } from './lib/ops/find.ts';
import { changeHints, printFailure, printResult, toKfError, type JsonForm } from './lib/output/error.ts';
import { openDisplay, reportOn, type Display } from './lib/output/progress.ts';
import type { Terminal } from './lib/output/terminal.ts';
import type { OrgSession, Session, SpaceSession } from './lib/session/session.ts';
import type { Block } from './lib/views/block.ts';

/** oclif's types of parsed flags and arguments. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the bound of oclif's own generics
type Output = Record<string, any>;

/** For commands that set the target. */
export interface ClusterSessionOptions {
  /** A changed context is not an error. */
  ignorePin?: boolean | undefined;
  /** Org and space stay as they are saved: flags of these names have another meaning here. */
  keepPlace?: boolean;
  /** `--space` names another space than the targeted one. */
  spaceFlagIsOther?: boolean;
  /** In place of `--context`. */
  context?: string | undefined;
  /** Another user of the kubeconfig. */
  kubeconfigUser?: string | undefined;
}

/** How long a command may clean up after an interruption. */
const graceMs = 1000;

/** @typeParam T the type of `result` in `--json` */
export abstract class KfCommand<T> extends Command {
  static override baseFlags = globalFlags;
  static override enableJsonFlag = true;
  static seeAlso: string[] = [];
  /** Environment variables without a flag, with their meaning. */
  static environment: [variable: string, meaning: string][] = [];
  /** The command changes something in the cluster. */
  static changes = false;
  /** The command installs or removes kf, so a missing kf does not explain its errors. */
  static isAboutInstallation = false;
  /** The output of `--json`: one document with the result, or documents that the command prints while it runs, one per line. */
  static json: JsonForm = 'document';
  /** `set-env`: text that looks like an unknown flag is data. */
  static dashesAreData = false;

  #frame: Frame | undefined;
  #display: Display | undefined;
  #result: T | undefined;
  #needs: 'cluster' | 'org' | 'space' = 'cluster';
  #session: Session | undefined;
  /** What was typed in place of the target. */
  #given: GivenPlace = {};
  #global: { context?: string; org?: string; space?: string; verbose?: boolean } = {};

  constructor(argv: string[], program: Program) {
    // Commands use only the name in it; a test checks that.
    super(argv, program as Command['config']);
  }

  abstract override run(): Promise<T>;

  /** Called by oclif's own runner; kf's frame calls `execute` directly. Both have the same output and exit code. */
  protected override async _run<R>(): Promise<R> {
    const { frameOf } = await import('./frame.ts');
    const code = await this.execute(await frameOf(this.config, this.argv));
    if (code !== 0) this.exit(code);
    return this.#result as R;
  }

  /** Runs with cf's streams. Returns the exit code. */
  async execute(frame: Frame): Promise<number> {
    this.#frame = frame;
    try {
      const result = await this.#untilInterrupted(this.run());
      this.#result = result;
      this.#display?.done();
      const status = this.exitCode(result);
      printResult(frame.terminal, result, { json: this.#statics.json, status });
      return status;
    } catch (thrown) {
      this.#display?.done();
      const error = await this.#explained(toKfError(thrown));
      if (error === this.signal.reason && error.code === 'interrupted' && error.exitCode === 130)
        error.hints.unshift(...this.hintsWhenInterrupted());
      // Before the failure is printed, because the trace reports abandoned requests, and nothing may follow `FAILED`.
      this.#session?.close();
      return await this.#fail(error);
    } finally {
      this.#session?.close();
    }
  }

  /** The exit code of a successful run; `migrate check` has another than 0. */
  protected exitCode(_result: T): number {
    return 0;
  }

  /** What Ctrl-C leaves, and how to go on. */
  protected hintsWhenInterrupted(): string[] {
    return ['Run the same command again: it continues.'];
  }

  /** The static side of the command. */
  get #statics(): typeof KfCommand {
    return this.ctor as typeof KfCommand;
  }

  protected get terminal(): Terminal {
    return this.frame.terminal;
  }

  protected get signal(): AbortSignal {
    return this.frame.signal;
  }

  protected get frame(): Frame {
    if (this.#frame === undefined) throw new Error('execute() gives a command its frame before it runs');
    return this.#frame;
  }

  protected get display(): Display {
    return (this.#display ??= openDisplay(this.terminal));
  }

  /** Shows the progress events of ops. */
  protected get report(): Report {
    return reportOn(this.display, this.frame.bin);
  }

  protected override async parse<F extends Output, B extends Output, A extends Output>(
    options?: Input<F, B, A>,
    argv: string[] = this.argv,
  ): Promise<ParserOutput<F, B, A>> {
    const declared = declaredBy(this.#statics);
    const read = await readDeclared(argv, declared, { env: this.frame.env, context: options });
    this.parsed = true;
    this.#global = read.flags;
    return { ...read, raw: [], metadata: { flags: {} }, nonExistentFlags: [] } as unknown as ParserOutput<F, B, A>;
  }

  /** A line of cf's text on stdout; names in it are shown as names: `` this.say`Getting apps in org ${org}...` ``. */
  protected say(parts: TemplateStringsArray, ...names: string[]): void {
    this.display.say(this.#styled(parts, names));
  }

  /** cf's first line: `` this.announce`Deleting app ${name}` `` adds org, space and user, and `...`. */
  protected announce(parts: TemplateStringsArray, ...names: string[]): void {
    this.display.say(`${this.#styled(parts, names)}${this.#place()}...`);
  }

  /** The same with an empty line after it, as before a table. */
  protected announceList(parts: TemplateStringsArray, ...names: string[]): void {
    this.announce(parts, ...names);
    this.display.say('');
  }

  /** A warning on stderr, and in `warnings` of `--json`. The only way in which a command warns. */
  override warn<W extends string | Error>(warning: W): W {
    this.display.warn(typeof warning === 'string' ? warning : warning.message);
    return warning;
  }

  #styled(parts: readonly string[], names: readonly string[]): string {
    return parts.map((part, index) => part + (names[index] === undefined ? '' : this.terminal.name(names[index]))).join('');
  }

  /** ` in org o / space s as user`, as far as the command needs them. */
  #place(): string {
    if (this.#session === undefined) throw new Error('a command opens its session before it announces what it does');
    const { org, space, user } = this.#session;
    const name = (text = ''): string => this.terminal.name(text);
    const inSpace = this.#needs === 'space' ? ` / space ${name(space?.name)}` : '';
    const inOrg = this.#needs === 'cluster' ? '' : ` in org ${name(org?.name)}`;
    return `${inOrg}${inSpace} as ${name(user)}`;
  }

  /** `OK` and the empty line after it. */
  protected ok(): void {
    this.display.done();
    this.terminal.out(this.terminal.ink.good('OK'));
    this.terminal.out();
  }

  protected print(blocks: readonly Block[]): void {
    this.display.done();
    this.terminal.print(blocks);
  }

  /** @param otherwise the flag that answers yes beforehand */
  protected async confirm(question: string, otherwise = '-f'): Promise<boolean> {
    const { confirm } = await import('./lib/output/prompt.ts');
    return confirm(this.terminal, { question, otherwise, signal: this.signal });
  }

  protected async clusterSession(options: ClusterSessionOptions = {}): Promise<Session> {
    return this.#open('cluster', options);
  }

  protected async orgSession(): Promise<OrgSession> {
    return (await this.#open('org')) as OrgSession;
  }

  protected async spaceSession(options: Pick<ClusterSessionOptions, 'spaceFlagIsOther'> = {}): Promise<SpaceSession> {
    return (await this.#open('space', options)) as SpaceSession;
  }

  /** The session of the targeted space, and the modules of the command: all are loaded at the same time. */
  protected inSpace<M extends unknown[]>(...modules: { [K in keyof M]: Promise<M[K]> }): Promise<[SpaceSession, ...M]> {
    return Promise.all([this.spaceSession(), ...modules]);
  }

  /** The same for the targeted org. */
  protected inOrg<M extends unknown[]>(...modules: { [K in keyof M]: Promise<M[K]> }): Promise<[OrgSession, ...M]> {
    return Promise.all([this.orgSession(), ...modules]);
  }

  /** The same without org and space. */
  protected inCluster<M extends unknown[]>(...modules: { [K in keyof M]: Promise<M[K]> }): Promise<[Session, ...M]> {
    return Promise.all([this.clusterSession(), ...modules]);
  }

  /** The app of that name in the targeted space. @throws KfError `not-found` */
  protected async findApp(session: SpaceSession, name: string): ReturnType<typeof findApp> {
    return (await import('./lib/ops/find.ts')).findApp(session, name);
  }

  /** Org and space in place of the targeted ones. */
  #otherPlace({ spaceFlagIsOther = false }: ClusterSessionOptions): { org?: string; space?: string } {
    const { org, space } = this.#global;
    return defined({ org, space: spaceFlagIsOther ? undefined : space });
  }

  async #open(needs: 'cluster' | 'org' | 'space', options: ClusterSessionOptions = {}): Promise<Session> {
    this.#needs = needs;
    const { openSession } = await import('./lib/session/session.ts');
    const { env, signal, bin } = this.frame;
    const { verbose } = this.#global;
    const variables = this.#statics.environment.map(([name]) => name);
    for (const warning of timeoutWarnings(env, ['CF_DIAL_TIMEOUT', ...variables])) this.warn(warning);
    const context = options.context ?? this.#global.context;
    const other = options.keepPlace === true ? {} : this.#otherPlace(options);
    const { org = present(env['KF_ORG']), space = present(env['KF_SPACE']) } = other;
    this.#given = typedPlace(defined({ context: this.#global.context, ...other }), env);
    this.#session = await openSession({
      needs,
      env: verbose === true ? { ...env, CF_TRACE: 'true' } : env,
      signal,
      bin,
      report: this.report,
      trace: (line) => (this.terminal.json ? this.terminal.err(line) : this.display.say(line)),
      ignorePin: options.ignorePin,
      acceptsAnyRelease: this.#statics.isAboutInstallation,
      kubeconfigUser: options.kubeconfigUser,
      context,
      org,
      space,
    });
    if (this.#statics.changes) await this.nameCluster(this.#session);
    return this.#session;
  }

  async #explained(error: KfError): Promise<KfError> {
    const session = this.#statics.isAboutInstallation ? undefined : this.#session;
    const explained = session === undefined ? error : await session.explain(error);
    changeHints(explained, await this.#samePlace());
    return explained;
  }

  /** The rest of the command is about another place than its session. */
  protected goOnIn(place: GivenPlace): void {
    this.#given = { ...this.#given, ...place };
  }

  /** Changes commands so that they act where this one acts. */
  async #samePlace(): Promise<(hint: string) => string> {
    if (Object.keys(this.#given).length === 0) return (hint) => hint;
    const { inSamePlace } = await import('./lib/cf/same-place.ts');
    return (hint) => inSamePlace(hint, this.#given);
  }

  /** Commands to try next, which act where this one acts. */
  protected async inSamePlace(hints: readonly string[]): Promise<string[]> {
    const change = await this.#samePlace();
    return hints.map((hint) => change(hint));
  }

  /** Tells a user with several clusters which one is about to change. */
  protected async nameCluster(session: Session): Promise<void> {
    if (!(await session.hasSeveralClusters())) return;
    const { server, context } = session.cluster.identity;
    this.terminal.err(`Cluster: ${server} (context '${context}')`);
  }

  async #fail(thrown: KfError): Promise<number> {
    const { terminal, bin } = this.frame;
    const error = await this.#unlessOfCf(thrown);
    if (wantsHelp(error)) {
      const { usageHelp } = await import('./lib/output/help.ts');
      for (const line of usageHelp(helpSubject(this.#statics, this.id ?? ''), bin)) terminal.out(line);
      error.hints.push(`${bin} help ${this.id ?? ''}`);
    }
    return printFailure(terminal, error, {
      json: this.#statics.json,
      withoutFailed: wantsHelp(error),
    });
  }

  /** Explains a flag that cf has and kf does not, and an argument of an older version of cf. */
  async #unlessOfCf(error: KfError): Promise<KfError> {
    const { unknownFlag, unexpectedArgument } = error.details;
    if (unknownFlag === undefined && unexpectedArgument === undefined) return error;
    const { cfFlagError, formerArguments } = await import('./lib/cf/cf-flags.ts');
    if (typeof unknownFlag === 'string') return cfFlagError(this.id ?? '', unknownFlag) ?? error;
    const instead = formerArguments[this.id ?? ''];
    if (instead !== undefined) error.hints.push(instead);
    return error;
  }

  /** The command's result, or the reason of the interruption when the command does not end by itself in time. */
  async #untilInterrupted(running: Promise<T>): Promise<T> {
    const { signal } = this.frame;
    let timer: NodeJS.Timeout | undefined;
    let giveUp = (): void => undefined;
    const interrupted = new Promise<never>((_, reject) => {
      giveUp = () => {
        timer = setTimeout(() => reject(toKfError(signal.reason)), graceMs);
      };
    });
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    try {
      return await Promise.race([running, interrupted]);
    } finally {
      signal.removeEventListener('abort', giveUp);
      clearTimeout(timer);
    }
  }
}

const present = (text: string | undefined): string | undefined => (text === '' ? undefined : text);
