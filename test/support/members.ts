// Plain members of their own orgs and spaces, for tests of attacks: each has one CF role, a token, and nothing else.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { writeRoleKubeconfig, type MemberRole, type Place } from './developer.ts';
import { feed } from './feed.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from './kf.ts';
import { until } from './until.ts';

export interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

/** One object or several for `kubectl … -f -`. */
export type Input = object | readonly object[];

function kubectlWith(kubeconfig: string, args: readonly string[], input?: Input): Promise<Said> {
  return new Promise((resolve) => {
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    const child = execFile('kubectl', [...args], { env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 255, stdout, stderr });
    });
    const items =
      input === undefined ? undefined : Array.isArray(input) ? { apiVersion: 'v1', kind: 'List', items: input as object[] } : input;
    feed(child, items === undefined ? '' : JSON.stringify(items));
  });
}

/** Applies objects with the ring's admin rights. @throws Error with kubectl's message */
export async function applyAsAdmin(...objects: object[]): Promise<void> {
  const said = await kubectlWith(ringEnv('KF_TEST_KUBECONFIG'), ['apply', '--server-side', '--force-conflicts', '-f', '-'], objects);
  if (said.code !== 0) throw new Error(`kubectl apply: ${said.stderr}`);
}

/** A user with one role in one org or space. */
export interface Member {
  /** The API server's name of the user. */
  user: string;
  kubeconfig: string;
  /** kubectl with the user's token; a refusal is a result, not an error. */
  kubectl: (args: readonly string[], input?: Input) => Promise<Said>;
  /** The installed kf, run as this user in their org or space. */
  kf: Kf;
}

interface Ready {
  status?: { conditions?: { type: string; status: string; reason: string; message: string }[] };
}

/** A condition of an object, as an admin sees it. */
export async function conditionOf(
  kind: string,
  ns: string,
  name: string,
  type = 'Ready',
): Promise<{ status: string; reason: string; message: string } | undefined> {
  const { status } = await kubectlJson<Ready>('get', kind, '-n', ns, name);
  return status?.conditions?.find((one) => one.type === type);
}

/** Waits until an object is Ready; the error contains its last message. */
export async function untilReady(kind: string, ns: string, name: string): Promise<void> {
  await until(`${kind} ${ns}/${name} to be ready`, async () => {
    const ready = await conditionOf(kind, ns, name);
    if (ready?.status === 'True') return true;
    throw new Error(`${ready?.reason ?? 'no condition'}: ${ready?.message ?? ''}`);
  });
}

const api = 'korifi.cloudfoundry.org/v1alpha1';

type Named = Record<string, unknown> & { metadata: { name: string; namespace: string } };

/** A CFOrg or CFSpace, by default named by a new GUID. */
export function orgObject(name: string = randomUUID(), displayName = `org-${name.slice(0, 8)}`): Named {
  return { apiVersion: api, kind: 'CFOrg', metadata: { name, namespace: 'cf' }, spec: { displayName } };
}
export function spaceObject(org: string, name: string = randomUUID(), displayName = `space-${name.slice(0, 8)}`): Named {
  return { apiVersion: api, kind: 'CFSpace', metadata: { name, namespace: org }, spec: { displayName } };
}

/**
 * The orgs, spaces and users of one test file. `const world = new TestWorld()` at the top, `await world.remove()` in `afterAll`, which deletes
 * every created org with its spaces.
 */
export class TestWorld {
  readonly #orgs: string[] = [];
  readonly #cleanups: (() => Promise<void>)[] = [];

  /** Creates an org; returns its GUID. */
  async org(): Promise<string> {
    const org = orgObject();
    const { name } = org.metadata;
    await applyAsAdmin(org);
    this.#orgs.push(name);
    await untilReady('cforg', 'cf', name);
    return name;
  }

  /** Creates a space, in a new org unless one is given. */
  async space(org?: string): Promise<Place> {
    const parent = org ?? (await this.org());
    const space = spaceObject(parent);
    await applyAsAdmin(space);
    await untilReady('cfspace', parent, space.metadata.name);
    return { org: parent, space: space.metadata.name };
  }

  /**
   * Creates a user with one role. Roles of orgs need no space; users with roles of spaces also get the user roles of org and root, like every CF
   * user.
   */
  async member(role: MemberRole, place: Place | { org: string }): Promise<Member> {
    const folder = await mkdtemp(path.join(tmpdir(), 'kf-member-'));
    const kubeconfig = path.join(folder, 'kubeconfig');
    const user = await writeRoleKubeconfig(ringEnv('KF_TEST_KUBECONFIG'), kubeconfig, role, place);
    const space = 'space' in place ? await displayName('cfspace', place.org, place.space) : '';
    const kf = await Kf.as(kubeconfig, {
      KF_ORG: await displayName('cforg', 'cf', place.org),
      ...(space === '' ? {} : { KF_SPACE: space }),
    });
    this.#cleanups.push(async () => {
      await kf.remove();
      await rm(folder, { recursive: true, force: true });
    });
    return { user, kubeconfig, kf, kubectl: (args, input) => kubectlWith(kubeconfig, args, input) };
  }

  /** Deletes everything that was created. */
  async remove(): Promise<void> {
    for (const cleanup of this.#cleanups) await cleanup();
    for (const org of this.#orgs) await kubectl('delete', 'cforg', '-n', 'cf', org, '--ignore-not-found', '--wait=false');
  }
}

/** The name that users see of an org or space. */
export async function displayName(kind: string, ns: string, name: string): Promise<string> {
  return kubectl('get', kind, '-n', ns, name, '-o', 'jsonpath={.spec.displayName}');
}
