import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg, portFlag } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';

interface Result {
  app: string;
  url: string;
  /** A browser was started. */
  opened: boolean;
}

export default class Open extends KfCommand<Result> {
  static override summary = 'print the URL of an app and show it in the browser';
  static override examples = ['kf open example-app', 'kf open example-app --forward', 'curl "$(kf open example-app)"'];
  static override seeAlso = ['app', 'map-route', 'ssh'];
  static override environment: [string, string][] = [['BROWSER', 'the program that opens URLs']];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    forward: Flags.boolean({
      summary: 'forward a local port to an instance, until Ctrl-C: for apps without a route, and clusters that you cannot reach',
    }),
    port: portFlag('--port', 'local port for --forward; left out: any free one'),
  };

  protected override hintsWhenInterrupted(): string[] {
    return [];
  }

  protected override exitCode(): number {
    return this.signal.aborted ? 130 : 0;
  }

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(Open);
    const { APP_NAME: name } = args;
    if (flags.port !== undefined && !flags.forward) throw incorrectUsage("'--port' and '--forward' must be used together.");
    if (flags.forward && this.terminal.json)
      throw incorrectUsage("'--forward' and '--json' cannot be used together: it runs until Ctrl-C.");
    const [session, ops, { openInBrowser }] = await this.inSpace(import('../lib/ops/apps/open.ts'), import('../lib/output/browser.ts'));
    const app = await this.findApp(session, name);
    const onProblem = (message: string): void => void this.warn(message);
    const url = flags.forward
      ? await ops.forwardedUrl(session, app, flags.port ?? 0, { signal: this.signal, onProblem })
      : await ops.appUrl(session, app);
    this.terminal.out(url);
    const opened = this.terminal.canAsk && !this.terminal.json && (await openInBrowser(url, this.frame.env));
    if (flags.forward) {
      this.terminal.err(`Forwarding ${url} to app ${name} until Ctrl-C.`);
      // Ctrl-C is the usual end: nothing has failed.
      await new Promise((resolve) => this.signal.addEventListener('abort', resolve, { once: true }));
    }
    return { app: name, url, opened };
  }
}
