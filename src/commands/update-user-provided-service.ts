import { KfCommand } from '../base-command.ts';
import { requiredArg } from '../flags.ts';
import { askedCredentials, credentialsFrom, userProvidedFlags } from '../flags/user-provided.ts';
import { parseList } from '../lib/cf/values.ts';
import { line } from '../lib/views/block.ts';
import { followNote } from '../lib/views/services.ts';

interface Result {
  name: string;
  changed: boolean;
}

export default class UpdateUserProvidedService extends KfCommand<Result> {
  static override summary = 'change credentials or tags of a service';
  static override changes = true;
  static override examples = [
    `kf update-user-provided-service example-db -p '{"uri":"postgres://user:secret@db.example.com/app"}'`,
    'kf update-user-provided-service example-db -p credentials.json -t postgres,sql',
    "kf update-user-provided-service example-db -t ''",
    'kf update-user-provided-service example-db --from-secret example-db-app',
  ];
  static override aliases = ['uups'];
  static override seeAlso = ['rename-service', 'restage', 'service', 'services'];
  static override args = { SERVICE_INSTANCE: requiredArg('service instance') };
  static override flags = userProvidedFlags();

  async run(): Promise<Result> {
    const { args, flags } = await this.parse(UpdateUserProvidedService);
    const name = args.SERVICE_INSTANCE.trim();
    const given = await credentialsFrom(flags);
    const { fromSecret } = given;
    const [session, { updateUserProvided }, { findService }, { withoutEffect }] = await this.inSpace(
      import('../lib/ops/services/instances.ts'),
      import('../lib/ops/find.ts'),
      import('../lib/ops/services/user-provided.ts'),
    );
    const credentials = await askedCredentials(this.terminal, given, this.signal);
    this.announce`Updating user provided service ${name}`;
    const tags = flags.tags === undefined ? undefined : parseList(flags.tags);
    const urls = { syslogDrainUrl: flags['syslog-drain'], routeServiceUrl: flags['route-service'] };
    if ([credentials, fromSecret, tags, urls.syslogDrainUrl, urls.routeServiceUrl].every((part) => part === undefined)) {
      this.print([line('No flags specified. No changes were made.')]);
      this.ok();
      return { name, changed: false };
    }
    await updateUserProvided(session, await findService(session, name), { credentials, fromSecret, tags, ...urls });
    for (const warning of withoutEffect({ displayName: name, ...urls })) this.warn(warning);
    this.ok();
    this.print([line(`TIP: Use '${this.frame.bin} restage' for any bound apps to ensure your env variable changes take effect`)]);
    if (fromSecret !== undefined) this.terminal.err(followNote(this.frame.bin));
    return { name, changed: true };
  }
}
