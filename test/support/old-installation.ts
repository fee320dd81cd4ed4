// A cluster of its own with an earlier kf in it, its apps, and requests to all of them while something happens.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installedRelease, type Release } from '../../tools/releases/releases.ts';
import { get } from './http.ts';
import { Kf, kubectl } from './kf.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from './local-cluster.ts';

const domain = 'apps.localhost';
/** An instance that serves, as its pod shows it. */
export interface Instance {
  app: string;
  uid: string;
  restarts: number;
}

interface Pods {
  items: {
    metadata: { uid: string; labels: Record<string, string> };
    status: { containerStatuses?: { restartCount: number }[] };
  }[];
}

/** What a client of one app saw that did not get its answer. */
export interface FailedRequest {
  app: string;
  /** Milliseconds after the first request. */
  after: number;
  answer: string;
}

export interface Traffic {
  asked: number;
  failed: FailedRequest[];
  /** Milliseconds of the answer that took longest. */
  slowest: number;
}

/** The settings of a kf that does not know https. */
function withoutHttps(file: string): string {
  return file.replace(/^httpsPort:.*\n/m, '');
}

export class OldInstallation {
  readonly old: Kf;
  /** The present kf. */
  readonly kf: Kf;
  readonly env: ClusterEnv;
  readonly #name: string;
  readonly #folder: string;
  readonly #files: { old: string; present: string };

  private constructor(parts: { old: Kf; kf: Kf; env: ClusterEnv; name: string; folder: string; files: { old: string; present: string } }) {
    this.old = parts.old;
    this.kf = parts.kf;
    this.env = parts.env;
    this.#name = parts.name;
    this.#folder = parts.folder;
    this.#files = parts.files;
  }

  /** Starts the cluster and sets the earlier kf up in it. */
  static async start(name: string, release: Release): Promise<OldInstallation> {
    const folder = await mkdtemp(path.join(tmpdir(), 'kf-upgrade-'));
    const program = await installedRelease(release, (line) => console.log(line));
    await clusterDown(name);
    const env = await clusterUp(name);
    const present = await writeSetupFile(folder, env);
    const old = path.join(folder, 'old-setup.yaml');
    await writeFile(old, withoutHttps(await readFile(present, 'utf8')));
    const config = env['KF_TEST_KUBECONFIG'] ?? '';
    const target = { KF_ORG: 'default', KF_SPACE: 'default' };
    const installation = new OldInstallation({
      old: await Kf.as(config, target, program),
      kf: await Kf.as(config, target),
      env,
      name,
      folder,
      files: { old, present },
    });
    await installation.old.ok('setup', '-f', old);
    return installation;
  }

  async remove(): Promise<void> {
    await Promise.all([this.old.remove(), this.kf.remove()]);
    await clusterDown(this.#name);
    await rm(this.#folder, { recursive: true, force: true });
  }

  image(version: number): string {
    return `${this.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:${String(version)}`;
  }

  /** Arguments of `kf setup` for the present kf or the earlier one. */
  setup(which: 'old' | 'present' = 'present'): string[] {
    return ['setup', '-f', this.#files[which]];
  }

  ctl(...args: string[]): Promise<string> {
    return kubectl('--kubeconfig', this.env['KF_TEST_KUBECONFIG'] ?? '', ...args);
  }

  get(app: string, urlPath = '/'): ReturnType<typeof get> {
    return get(`${app}.${domain}`, urlPath, {}, Number(this.env['KF_CLUSTER_HTTP_PORT']));
  }

  /** All instances of all apps, also those that end. */
  async instances(): Promise<Instance[]> {
    const text = await this.ctl('get', 'pods', '-A', '-l', 'korifi.cloudfoundry.org/process-type', '-o', 'json');
    const { items } = JSON.parse(text) as Pods;
    const all = items.map(({ metadata, status }) => ({
      app: metadata.labels['korifi.cloudfoundry.org/app-guid'] ?? '',
      uid: metadata.uid,
      restarts: (status.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
    }));
    return all.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
  }

  async #ask(app: string, started: number, seen: Traffic): Promise<void> {
    const begun = performance.now();
    const answer = await this.get(app).then(
      ({ status, body }) => (status === 200 ? undefined : `${String(status)} ${body.slice(0, 80)}`),
      (error: unknown) => String(error),
    );
    seen.asked += 1;
    seen.slowest = Math.max(seen.slowest, performance.now() - begun);
    if (answer !== undefined) seen.failed.push({ app, after: Math.round(begun - started), answer });
  }

  /** Sends requests to every app while `act` runs, each client one after the other, and a last one to each when it has ended. */
  async trafficDuring(apps: readonly string[], act: () => Promise<unknown>): Promise<Traffic> {
    const seen: Traffic = { asked: 0, failed: [], slowest: 0 };
    const started = performance.now();
    let isDone = false;
    const client = async (app: string): Promise<void> => {
      while (!isDone) {
        await this.#ask(app, started, seen);
        await sleep(100);
      }
      await this.#ask(app, started, seen);
    };
    await Promise.all([...apps.map(client), act().finally(() => (isDone = true))]);
    return seen;
  }
}
