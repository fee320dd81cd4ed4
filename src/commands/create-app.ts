import * as Flags from '@oclif/core/flags';
import { KfCommand } from '../base-command.ts';
import { appArg } from '../flags.ts';
import { incorrectUsage } from '../lib/cf/usage.ts';
import { assertAppName, parseChoice } from '../lib/cf/values.ts';
import type { CreatedApp } from '../lib/ops/push/create.ts';
import { line } from '../lib/views/block.ts';

const types = ['buildpack', 'docker', 'cnb'] as const;

export default class CreateApp extends KfCommand<CreatedApp> {
  static override summary = 'create an empty app, for a later push';
  static override changes = true;
  static override examples = ['kf create-app example-app', 'kf create-app example-app --app-type docker'];
  static override seeAlso = ['app', 'apps', 'push'];
  static override args = { APP_NAME: appArg() };
  static override flags = {
    'app-type': Flags.custom<(typeof types)[number]>({
      parse: (text) => Promise.resolve().then(() => parseChoice(text, '--app-type', types)),
      summary: 'what is pushed later: source (buildpack, cnb) or an image (docker); default buildpack',
      helpValue: 'APP_TYPE',
    })(),
    buildpack: Flags.string({
      char: 'b',
      multiple: true,
      multipleNonGreedy: true,
      summary: 'buildpack, in order; "default" detects',
      helpValue: 'BUILDPACK',
    }),
  };

  async run(): Promise<CreatedApp> {
    const { args, flags } = await this.parse(CreateApp);
    const name = args.APP_NAME;
    assertAppName(name);
    const lifecycle = flags['app-type'] === 'docker' ? 'docker' : 'buildpack';
    const buildpacks = buildpacksOf(flags.buildpack);
    if (lifecycle === 'docker' && buildpacks.length > 0)
      throw incorrectUsage('The following arguments cannot be used together: --app-type docker, --buildpack, -b');
    const [session, { createApp }] = await this.inSpace(import('../lib/ops/push/create.ts'));
    this.announce`Creating app ${name}`;
    const app = await createApp(session, { name, lifecycle, buildpacks });
    if (!app.created) this.print([line(`App '${app.name}' already exists.`)]);
    this.ok();
    return app;
  }
}

/** `default` and `null` mean: detect. */
function buildpacksOf(given: readonly string[] = []): readonly string[] {
  const detects = given.some((name) => name === 'default' || name === 'null');
  if (detects && given.length > 1) throw incorrectUsage('Multiple buildpacks flags cannot have null/default option.');
  return detects ? [] : given;
}
