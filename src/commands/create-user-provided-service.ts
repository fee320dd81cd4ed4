import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { askedCredentials, credentialsFrom, userProvidedFlags } from '../flags/user-provided.ts';
import { parseList } from '../lib/cf/values.ts';
import { line } from '../lib/views/block.ts';
import { followNote } from '../lib/views/services.ts';

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
    'kf create-user-provided-service example-db --from-secret example-db-app',
  ];
  static override aliases = ['cups'];
  static override seeAlso = ['bind-service', 'services'];
  static override args = { SERVICE_INSTANCE: requiredArg('name of the instance') };
  static override flags = userProvidedFlags();

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(CreateUserProvidedService);
    const name = args.SERVICE_INSTANCE.trim();
    const given = await credentialsFrom(flags);
    const { fromSecret } = given;
    const [session, { createUserProvided, withoutEffect }] = await this.inSpace(import('../lib/ops/services/user-provided.ts'));
    const credentials = (await askedCredentials(this.terminal, given, this.signal)) ?? {};
    this.announce`Creating user provided service ${name}`;
    const urls = {
      syslogDrainUrl: flags['syslog-drain'],
      routeServiceUrl: flags['route-service'],
    };
    const created = await createUserProvided(session, { name, credentials, fromSecret, tags: parseList(flags.tags ?? ''), ...urls });
    if (!created) this.print([line(`Service instance ${name} already exists`)]);
    else for (const warning of withoutEffect({ displayName: name, ...urls })) this.warn(warning);
    this.ok();
    if (created && fromSecret !== undefined) this.terminal.err(followNote(this.frame.bin));
    return { name, created };
  }
}
