import { KfCommand } from '../base-command.ts';
import { appArg, requiredArg } from '../flags.ts';
import { assertAppName } from '../lib/cf/values.ts';

interface Result {
  name: string;
  formerName: string;
  guid: string;
}

export default class Rename extends KfCommand<Result> {
  static override summary = 'give an app another name';
  static override changes = true;
  static override examples = ['kf rename example-app example-app-old'];
  static override seeAlso = ['apps', 'delete'];
  static override args = { APP_NAME: appArg(), NEW_APP_NAME: requiredArg('new name of the app') };

  async run(): Promise<Result> {
    const { args } = await this.parse(Rename);
    const { APP_NAME: formerName, NEW_APP_NAME: name } = args;
    assertAppName(name);
    const [session, { renameApp }] = await this.inSpace(import('../lib/ops/apps/rename.ts'));
    this.announce`Renaming app ${formerName} to ${name}`;
    const { metadata } = await renameApp(session, await this.findApp(session, formerName), name);
    this.ok();
    return { name, formerName, guid: metadata.name };
  }
}
