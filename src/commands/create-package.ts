import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import { imagePassword, workingFolder } from '../flags/push.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import type { PackageSummary } from '../lib/api/results.ts';
import { defined } from '../lib/defined.ts';
import { line } from '../lib/views/block.ts';

export default class CreatePackage extends KfCommand<PackageSummary> {
  static override summary = 'make a package without a build';
  static override changes = true;
  static override examples = [
    'kf create-package example-app -p ./example-app',
    'kf create-package example-app -o registry.example.com/example-app:1.2',
    'kf create-package example-app -o registry.example.com/example-app:1.2 --docker-username bob',
  ];
  static override seeAlso = ['app', 'droplets', 'packages', 'push', 'stage-package'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    'docker-image': Flags.string({ char: 'o', summary: 'ready image instead of source', helpValue: 'IMAGE' }),
    'docker-username': Flags.string({ summary: "user of the image's registry; the password is CF_DOCKER_PASSWORD", helpValue: 'USERNAME' }),
    path: Flags.string({ char: 'p', summary: 'folder, or zip, jar or war file, to upload, default the working folder', helpValue: 'PATH' }),
  };

  async run(): Promise<PackageSummary> {
    const { args, flags } = await this.parse(CreatePackage);
    const { 'docker-image': image, 'docker-username': username = '', path } = flags;
    if (image !== undefined && path !== undefined)
      throw incorrectUsage('The following arguments cannot be used together: --docker-image, -o, -p');
    if (username !== '' && image === undefined) throw incorrectUsage("'--docker-image, -o' and '--docker-username' must be used together.");
    const docker = image === undefined || username === '' ? undefined : { image, username };
    const password = await imagePassword({ terminal: this.terminal, env: this.frame.env, signal: this.signal }, [defined({ docker })]);
    const credential = password === undefined ? undefined : { username, password };
    const [session, { createPackage }] = await this.inSpace(import('../lib/ops/apps/packages.ts'));
    if (image === undefined) this.announce`Uploading and creating bits package for app ${args.APP_NAME}`;
    else this.announce`Creating docker package for app ${args.APP_NAME}`;
    const app = await this.findApp(session, args.APP_NAME);
    const created = await createPackage(
      session,
      app,
      image === undefined ? { path: path ?? workingFolder() } : { image, ...defined({ credential }) },
    );
    this.print([line(`Package with guid '${created.guid}' has been created.`)]);
    this.ok();
    return created;
  }
}
