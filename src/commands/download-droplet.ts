import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import { workingFolder } from '../flags/push.ts';
import type { DownloadedDroplet } from '../lib/ops/apps/download.ts';
import { line } from '../lib/views/block.ts';

export default class DownloadDroplet extends KfCommand<DownloadedDroplet> {
  static override summary = 'write the files of a droplet to a tar archive';
  static override examples = [
    'kf download-droplet example-app',
    'kf download-droplet example-app --droplet DROPLET_GUID --path droplet.tgz',
  ];
  static override seeAlso = ['apps', 'droplets', 'push', 'set-droplet'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    droplet: Flags.string({ summary: "droplet to download, default the app's current one", helpValue: 'DROPLET_GUID' }),
    path: Flags.string({ char: 'p', summary: 'file or folder to write, default the working folder', helpValue: 'PATH' }),
  };

  async run(): Promise<DownloadedDroplet> {
    const { args, flags } = await this.parse(DownloadDroplet);
    const { droplet: guid, path = workingFolder() } = flags;
    const [session, { downloadDroplet }] = await this.inSpace(import('../lib/ops/apps/download.ts'));
    if (guid === undefined) this.announce`Downloading current droplet for app ${args.APP_NAME}`;
    else this.announce`Downloading droplet ${guid} for app ${args.APP_NAME}`;
    const downloaded = await downloadDroplet(session, await this.findApp(session, args.APP_NAME), { guid, path });
    this.print([line(`Droplet downloaded successfully at ${downloaded.path}`)]);
    this.ok();
    return downloaded;
  }
}
