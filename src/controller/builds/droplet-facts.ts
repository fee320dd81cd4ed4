// Reads a droplet's processes and buildpacks from its image if they did not fit into the report of the build's container.

import { secretType } from '../../lib/api/core.ts';
import { reasons } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import { insecureRegistries, pushRepository } from '../../lib/api/repositories.ts';
import type { BuildWorkload } from '../../lib/api/types.generated.ts';
import { registryKeys } from '../../templates/build-scripts.ts';
import type { Outcome } from '../runtime/outside.ts';
import type { Context } from '../runtime/reconciler.ts';
import { classifyDropletError, readImage } from './docker-image.ts';
import type { ImageFacts } from './docker-image.ts';
import type { FailedBuild } from './outcome.ts';
import { factsFromLabel } from './report.ts';
import type { DropletFacts } from './report.ts';
import { appGuidOf, registrySecretName } from './start.ts';
import { UntrustedError } from './untrusted.ts';

/** How long after the end of a build its registry may fail to answer. */
const registryPatienceMs = 5 * 60_000;

export type FactsOutcome =
  /** The build is reconciled again when the registry has answered. */
  | { state: 'asked' }
  | { state: 'read'; facts: DropletFacts }
  | { state: 'unanswered'; message: string }
  | ({ state: 'failed' } & FailedBuild);

/**
 * The facts, from the label of the image `digest`. A registry that does not answer is asked again for a while, and then the build fails: a
 * droplet without its processes would run, and the app would lose its workers.
 *
 * @param waitedMs milliseconds since the build's containers ended
 */
export async function readFacts(context: Context, live: Stored<BuildWorkload>, digest: string, waitedMs: number): Promise<FactsOutcome> {
  const image = `${pushRepository(context.info().registry, live.metadata.namespace, appGuidOf(context, live), 'droplets')}@${digest}`;
  const credential = await readCredential(context, live);
  if (credential === undefined)
    return {
      state: 'failed',
      failure: { reason: reasons.registryRefused },
      message: `The processes of the droplet cannot be read: the Secret '${registrySecretName(live.metadata.name)}' has no credential.`,
    };
  const outcome = askRegistry(context, image, credential);
  if (outcome === undefined) return { state: 'asked' };
  if (outcome.ok) return factsOf(outcome.value);
  const { kind, message } = classifyDropletError(image, outcome.error);
  if (kind === 'unreachable' && waitedMs <= registryPatienceMs)
    return { state: 'unanswered', message: `The build is done, but its droplet cannot be read yet: ${message}` };
  return {
    state: 'failed',
    failure: { reason: reasons.registryRefused },
    message: `The processes of the droplet cannot be read from the registry: ${message}`,
  };
}

/** The build's own credential: `user:password` in base64. */
async function readCredential(context: Context, { metadata }: Stored<BuildWorkload>): Promise<string | undefined> {
  const secret = await context.cluster.get(secretType, metadata.namespace, registrySecretName(metadata.name), context.signal);
  const [user, password] = [registryKeys.username, registryKeys.password].map((key) => secret?.data?.[key]);
  if (user === undefined || password === undefined) return undefined;
  const text = [user, password].map((part) => Buffer.from(part, 'base64').toString('utf8')).join(':');
  return Buffer.from(text).toString('base64');
}

function askRegistry(context: Context, image: string, auth: string): Outcome<ImageFacts> | undefined {
  const info = context.info();
  const text = JSON.stringify({ auths: { [info.registry.pushHost]: { auth } } });
  const dockerConfigs = [{ text, from: 'the build' }];
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  return context.outside(`droplet ${image}`, 15_000, (signal) =>
    readImage(image, { dockerConfigs, insecureRegistries: insecureRegistries(info), architecture, signal }),
  );
}

function factsOf({ buildMetadata }: ImageFacts): FactsOutcome {
  // A droplet that names no process still runs: it has the entry point of its image.
  if (buildMetadata === '') return { state: 'read', facts: { processTypes: [], buildpacks: [] } };
  try {
    return { state: 'read', facts: factsFromLabel(buildMetadata) };
  } catch (error) {
    // A second look at the same image would find the same.
    if (error instanceof UntrustedError) return { state: 'failed', failure: { reason: reasons.buildFailed }, message: error.message };
    throw error;
  }
}
