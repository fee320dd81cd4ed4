import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { readJsonOrFile } from '../lib/cf/json-or-file.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { parseList } from '../lib/cf/values.ts';
import { line } from '../lib/views/block.ts';

interface Result {
  name: string;
  created: boolean;
}

export default class CreateUserProvidedService extends KfCommand<Result> {
  static override summary = 'create a service from credentials';
  static override changes = true;
  static override examples = [
    `kf create-user-provided-service example-db -p '{"uri":"postgres://user:secret@db.example.com/app"}'`,
    'kf create-user-provided-service example-db -p credentials.json -t postgres,sql',
    'kf create-user-provided-service example-db -p username,password',
  ];
  static override aliases = ['cups'];
  static override seeAlso = ['bind-service', 'services'];
  static override args = { SERVICE_INSTANCE: requiredArg('name of the instance') };
  static override flags = {
    credentials: Flags.string({ char: 'p', summary: 'JSON, a file with JSON, or names of values to ask for', helpValue: 'CREDENTIALS' }),
    'syslog-drain': Flags.string({
      char: 'l',
      summary: 'URL for logs of bound apps; stored, but not used yet',
      helpValue: 'SYSLOG_DRAIN_URL',
    }),
    'route-service': Flags.string({
      char: 'r',
      summary: 'URL for requests of bound routes; stored, but not used yet',
      helpValue: 'ROUTE_SERVICE_URL',
    }),
    tags: Flags.string({ char: 't', summary: 'tags, comma-separated', helpValue: 'TAGS' }),
  };

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateUserProvidedService);
    const name = args.SERVICE_INSTANCE.trim();
    const credentials = await this.#credentials(flags.credentials);
    const [session, { createUserProvided, withoutEffect }] = await this.inSpace(import('../lib/ops/services/user-provided.ts'));
    this.announce`Creating user provided service ${name}`;
    const urls = {
      syslogDrainUrl: flags['syslog-drain'],
      routeServiceUrl: flags['route-service'],
    };
    const created = await createUserProvided(session, { name, credentials, tags: parseList(flags.tags ?? ''), ...urls });
    if (!created) this.print([line(`Service instance ${name} already exists`)]);
    else for (const warning of withoutEffect({ displayName: name, ...urls })) this.warn(warning);
    this.ok();
    return { name, created };
  }

  /** JSON, a file, or names whose values are prompted for without echo. */
  async #credentials(text: string | undefined): Promise<Record<string, unknown>> {
    if (text === undefined) return {};
    const given = await readJsonOrFile(text, '-p');
    if (given !== undefined) return given;
    const names = parseList(text);
    if (names.length === 0 || /[{}[\]"/]/.test(text)) {
      throw incorrectUsage(
        'Invalid configuration provided for -p flag. Please provide a valid JSON object or path to a file containing a valid JSON object.',
      );
    }
    const { askSecret } = await import('../lib/output/prompt.ts');
    const answers: Record<string, unknown> = {};
    for (const one of names) answers[one] = await askSecret(this.terminal, one, "-p '{...}' or -p FILE");
    return answers;
  }
}
