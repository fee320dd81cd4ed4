import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, numberFlag, processFlag } from '../flags.ts';
import { parsePortSpec } from '../lib/cf/port-spec.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import type { RemoteEnd } from '../lib/output/remote.ts';

const together = (...names: string[]): Error => incorrectUsage(`The following arguments cannot be used together: ${names.join(', ')}`);

/** Ctrl-C is the usual end of forwarding: nothing has failed. */
const untilAborted = (signal: AbortSignal): Promise<RemoteEnd> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve({ exitCode: 130 }), { once: true }));

export default class Ssh extends KfCommand<RemoteEnd> {
  static override summary = 'run a shell or a command in an app instance';
  static override examples = [
    'kf ssh example-app',
    'kf ssh example-app -c "ls -l" --process worker -i 1',
    'kf ssh example-app -N -L 5432:db.example.com:5432',
  ];
  static override seeAlso = ['app', 'env', 'logs'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    'app-instance-index': numberFlag({
      char: 'i',
      name: 'app-instance-index',
      least: 0,
      summary: 'index of the instance',
      helpValue: 'INDEX',
    }),
    command: Flags.string({
      char: 'c',
      multiple: true,
      summary: 'run this instead of a shell; several are joined by a blank',
      helpValue: 'COMMAND',
    }),
    'local-forward': Flags.custom<ReturnType<typeof parsePortSpec>>({
      char: 'L',
      multiple: true,
      parse: (text) => Promise.resolve().then(() => parsePortSpec(text)),
      summary: 'forward a local port to an address that the instance reaches',
      helpValue: '[BIND:]PORT:HOST:PORT',
    })(),
    'skip-remote-execution': Flags.boolean({ char: 'N', summary: 'run nothing, only forward ports (-L) until Ctrl-C' }),
    process: processFlag(),
    'request-pseudo-tty': Flags.boolean({ char: 't', summary: 'give the command a terminal if stdin is one' }),
    'force-pseudo-tty': Flags.boolean({ summary: 'give the command a terminal in any case' }),
    'disable-pseudo-tty': Flags.boolean({ char: 'T', summary: 'give the shell no terminal' }),
    'skip-host-validation': Flags.boolean({ char: 'k', summary: 'no effect: the kubeconfig says how the server is verified' }),
  };

  #isRunning = false;

  /** Nothing is continued by a second run. The connection alone ends: Kubernetes tells a program without a terminal nothing. */
  protected override hintsWhenInterrupted(): string[] {
    return this.#isRunning ? ['The command may go on in the instance.'] : [];
  }

  protected override exitCode({ exitCode }: RemoteEnd): number {
    return exitCode;
  }

  /** @throws KfError `usage` for flags that contradict each other */
  async #parsed() {
    const parsed = await this.parse(Ssh);
    const { flags } = parsed;
    const terminals = [flags['disable-pseudo-tty'], flags['request-pseudo-tty'], flags['force-pseudo-tty']];
    if (terminals.filter(Boolean).length > 1) throw together('-T', '-t', '--force-pseudo-tty');
    if (flags['skip-remote-execution'] && flags.command !== undefined) throw together('-N', '-c');
    if (flags['skip-remote-execution'] && flags['local-forward'] === undefined)
      throw incorrectUsage("'-N' and '-L' must be used together.");
    if (this.terminal.json && flags.command === undefined) throw incorrectUsage("'--json' and '-c' must be used together.");
    return parsed;
  }

  async run(): Promise<RemoteEnd> {
    const { args, flags } = await this.#parsed();
    const command = flags.command?.join(' ');
    const specs = flags['local-forward'] ?? [];
    const [session, ops, { isOnTerminal, joinStreams }] = await this.inSpace(
      import('../lib/ops/apps/ssh.ts'),
      import('../lib/output/remote.ts'),
    );
    const app = await this.findApp(session, args.APP_NAME);
    const instance = await ops.findInstance(session, app, { process: flags.process, index: flags['app-instance-index'] ?? 0 });
    const ended = new AbortController();
    const signal = AbortSignal.any([this.signal, ended.signal]);
    const onProblem = (message: string): void => void this.warn(message);
    const tunnels = await ops.openTunnels(session, instance, specs, { signal, onProblem });
    for (const { local, remote } of tunnels) {
      this.terminal.err(`Forwarding ${local.host}:${local.port} to ${remote.host}:${remote.port}.`);
    }
    if (flags['skip-remote-execution']) return untilAborted(this.signal);
    const isAutomatic = command === undefined || flags['request-pseudo-tty'];
    const tty = flags['force-pseudo-tty'] || (isAutomatic && !flags['disable-pseudo-tty'] && isOnTerminal());
    try {
      const remote = await ops.runIn(session, instance, { command, tty, term: this.frame.env['TERM'], signal: this.signal });
      this.#isRunning = command !== undefined && !tty;
      return await joinStreams(remote, { tty, keep: this.terminal.json });
    } finally {
      ended.abort();
    }
  }
}
