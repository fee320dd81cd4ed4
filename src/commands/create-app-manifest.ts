import path from 'node:path';
import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import { line } from '../lib/views/block.ts';

export default class CreateAppManifest extends KfCommand<{ app: string; path: string }> {
  static override summary = 'write the settings of an app to a manifest';
  static override examples = ['kf create-app-manifest example-app', 'kf create-app-manifest example-app -p manifest.yml'];
  static override seeAlso = ['apply-manifest', 'apps', 'push'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    path: Flags.string({ char: 'p', summary: 'file to write, default APP_NAME_manifest.yml in the working folder', helpValue: 'PATH' }),
  };

  async run(): Promise<{ app: string; path: string }> {
    const { args, flags } = await this.parse(CreateAppManifest);
    const app = args.APP_NAME;
    const [session, { appManifest, writeManifest }] = await this.inSpace(import('../lib/ops/apps/export-manifest.ts'));
    this.announce`Creating an app manifest from current settings of app ${app}`;
    const text = await appManifest(session, await this.findApp(session, app));
    const file = flags.path ?? path.join(process.cwd(), `${app}_manifest.yml`);
    await writeManifest(file, text);
    this.print([line(`Manifest file created successfully at ${file}`)]);
    this.ok();
    return { app, path: file };
  }
}
