// An app with two revisions, for the commands that list them and return to them.

import { configMapType, secretType } from '../../src/lib/api/core.ts';
import { kinds } from '../../src/lib/api/group.ts';
import { changeOf } from '../../src/lib/api/held.ts';
import { printRecord, printSettings, type RevisionRecord } from '../../src/lib/api/revisions.ts';
import { nameOf, ns, type PushScene } from './push-scene.ts';

const encoded = (text: string): string => Buffer.from(text).toString('base64');
export const sidecar = { name: 'proxy', command: 'proxy --port 9000' };
export const push = ['push', 'shop', '-p', 'app'];

/** App 'shop' of a scene, with the revisions that the controller would record. */
export class RevisionScene {
  readonly #scene: PushScene;

  constructor(scene: PushScene) {
    this.#scene = scene;
  }

  get envSecret(): string {
    return this.#scene.app().spec.envSecretName ?? '';
  }

  /** The app's variables as they are stored. */
  variables(): Record<string, string> {
    const data = this.#scene.cluster.memory.peek(secretType, ns, this.envSecret)?.data ?? {};
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
  }

  /** Writes a revision as the controller does. */
  async recorded(version: number, droplet: string, env: Record<string, string>, command = ''): Promise<void> {
    const guid = nameOf(this.#scene.app());
    const record: RevisionRecord = {
      version,
      guid: `guid-${String(version)}`,
      description: version === 1 ? 'Initial revision.' : 'New droplet deployed.',
      droplet,
      created: '2026-08-07T10:16:20Z',
      by: 'alice',
      settings: version,
    };
    const settings = {
      env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, encoded(value)])),
      commands: { web: command },
      sidecars: version === 1 ? { web: JSON.stringify([sidecar]) } : {},
    };
    const metadata = { name: `${guid}-revisions`, namespace: ns };
    const { memory } = this.#scene.cluster;
    if (version === 1) {
      await this.#scene.cluster.add(configMapType, { metadata });
      await this.#scene.cluster.add(secretType, { metadata });
    }
    await memory.mergePatch(configMapType, ns, metadata.name, { data: { [String(version)]: printRecord(record) } });
    await memory.mergePatch(secretType, ns, metadata.name, { data: { [String(version)]: printSettings(settings) } });
    this.#scene.setStatus(kinds.app, guid, { revision: { change: 'x', version, deployed: version, droplets: [droplet] } });
  }

  /** Two revisions: the first with COLOUR and a command, the second with other source and SIZE. */
  async twoRevisions(): Promise<[string, string]> {
    await this.#scene.ok(...push, '-c', 'serve first', '-m', '32M');
    await this.#scene.ok('set-env', 'shop', 'COLOUR', 'red');
    const first = nameOf(this.#scene.builds()[0]);
    await this.recorded(1, first, { COLOUR: 'red' }, 'serve first');
    await this.#scene.ok('unset-env', 'shop', 'COLOUR');
    await this.#scene.ok('set-env', 'shop', 'SIZE', '1');
    this.#scene.source('b');
    await this.#scene.ok(...push, '-c', 'null');
    const second = nameOf(this.#scene.builds()[1]);
    await this.recorded(2, second, { SIZE: '1' });
    return [first, second];
  }

  /** Rolls the app back; returns the version that it went to. */
  async rollback(...flags: string[]): Promise<number> {
    const { stdout } = await this.#scene.ok('rollback', 'shop', ...flags, '-f', '--json');
    return (JSON.parse(stdout) as { result: { version: number } }).result.version;
  }

  /** Says that this revision serves since the app's present change, and which one is the newest, as the controller does. */
  serves(version: number, more: object = {}, status: object = {}): void {
    const revision = { change: changeOf(this.#scene.app()), version, deployed: version, droplets: [], ...more };
    this.#scene.setStatus(kinds.app, nameOf(this.#scene.app()), { revision, ...status });
  }
}
