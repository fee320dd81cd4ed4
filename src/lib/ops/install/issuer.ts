// The issuer of cert-manager: what must exist before setup names it, and what is removed when kf makes the certificates again.

import { X509Certificate } from 'node:crypto';
import { certManagerGroup, certificateType, issuedPrefix, issuerTypeOf } from '../../api/cert-manager.ts';
import { certificateFields } from '../../api/certificates.ts';
import { secretType } from '../../api/core.ts';
import { gatewayType, type Listener } from '../../api/gateway.ts';
import { labels, places } from '../../api/group.ts';
import { KfError } from '../../errors.ts';
import type { Report } from '../../events.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { patchAsRead } from '../../kube/patch-as-read.ts';
import { gatewayName } from '../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../templates/setup/namespaces.ts';
import { systemNamespace, type SetupPlan } from '../../../templates/setup/options.ts';
import { kindNamed } from './kinds.ts';
import { getIfAny } from './present.ts';
import { listOrNone } from './removal.ts';
import { waitUntilDone } from './waits.ts';

interface SetupRun {
  cluster: Cluster;
  plan: SetupPlan;
  report: Report;
  signal?: AbortSignal;
}

/** How long the controller may take to make its certificate again with the names of all domains. */
const ownMs = 60_000;

/** Checks that cert-manager and the issuer exist, before anything is written. @throws KfError with what to do */
export async function checkIssuer(cluster: Cluster, plan: SetupPlan): Promise<void> {
  const issuer = plan.gateway.https?.issuer;
  if (issuer === undefined) return;
  const type = issuerTypeOf(issuer);
  const crd = kindNamed('CustomResourceDefinition');
  const names = [certificateType, type].map(({ plural }) => `${plural}.${certManagerGroup}`);
  const found = await Promise.all(names.map((name) => getIfAny(cluster, crd, undefined, name)));
  const lacking = names.filter((_, index) => found[index] === undefined);
  if (lacking.length > 0) {
    throw new KfError('not-found', `This cluster has no cert-manager: the kind ${lacking.join(' and the kind ')} is missing.`, {
      hints: ['Install cert-manager (https://cert-manager.io/docs/installation), or leave out --tls-issuer.'],
    });
  }
  const namespace = gatewayNamespace(plan);
  if (issuer.namespace !== undefined && issuer.namespace !== namespace) {
    throw new KfError(
      'usage',
      `Incorrect Usage: An Issuer makes certificates in its own namespace, and those of the gateway are in '${namespace}', not in '${issuer.namespace}'.`,
      { hints: [`kf setup --tls-issuer ${namespace}/${issuer.name}`, `For a ClusterIssuer: kf setup --tls-issuer ${issuer.name}`] },
    );
  }
  if ((await getIfAny(cluster, type, issuer.namespace, issuer.name)) !== undefined) return;
  const where = issuer.namespace === undefined ? '' : ` in namespace '${issuer.namespace}'`;
  throw new KfError('not-found', `There is no ${type.kind} '${issuer.name}'${where}.`, {
    hints: ['kubectl get clusterissuers', 'kubectl get issuers -A'],
  });
}

const isIssued = ({ tls }: Listener): boolean => tls?.certificateRefs?.[0]?.name.startsWith(issuedPrefix) === true;

/** Waits until kf's own certificate has the names of these listeners: there must be one at every moment. */
async function awaitOwnCertificate(run: SetupRun, hosts: readonly string[]): Promise<void> {
  const { cluster } = run;
  await waitUntilDone(run, "the controller's certificate for all domains", ownMs, async () => {
    const secret = await cluster.get(secretType, systemNamespace, places.gatewayCertificate);
    const pem = Buffer.from(secret?.data?.[certificateFields.certificate] ?? '', 'base64').toString('utf8');
    const lacking = pem === '' ? hosts : hosts.filter((host) => new X509Certificate(pem).checkHost(host.replace('*', 'any')) === undefined);
    return { done: lacking.length === 0, seen: `no certificate for ${lacking.join(', ')}` };
  });
}

/** Removes the listeners and the Certificates that the controller made for an issuer of an earlier setup. */
export async function removeFormerIssued(run: SetupRun): Promise<void> {
  const { cluster, plan, signal } = run;
  const { existing, https } = plan.gateway;
  if (existing !== undefined || https?.issuer !== undefined) return;
  const namespace = gatewayNamespace(plan);
  const gateway = await getIfAny(cluster, gatewayType, namespace, gatewayName);
  const former = (gateway?.spec?.listeners ?? []).filter(isIssued);
  if (gateway !== undefined && former.length > 0) {
    if (https !== undefined)
      await awaitOwnCertificate(
        run,
        former.flatMap(({ hostname }) => hostname ?? []),
      );
    const gone = (): KfError => new KfError('conflict', `The Gateway '${namespace}/${gatewayName}' was deleted meanwhile.`);
    const without = (live: typeof gateway) => ({ spec: { listeners: (live.spec?.listeners ?? []).filter((one) => !isIssued(one)) } });
    await patchAsRead(cluster, { type: gatewayType, object: gateway, gone }, without, signal);
  }
  const { items } = await listOrNone(cluster, certificateType, `${labels.managedBy}=kf`);
  for (const { metadata } of items) await cluster.delete(certificateType, metadata.namespace, metadata.name, { uid: metadata.uid });
  if (items.length === 0) return;
  // cert-manager keeps the Secrets, also those of domains that were deleted before.
  for (const ns of new Set([namespace, ...items.map(({ metadata }) => metadata.namespace)])) {
    const secrets = (await cluster.list(secretType, { ns })).items.filter(({ metadata }) => metadata.name.startsWith(issuedPrefix));
    for (const { metadata } of secrets) await cluster.delete(secretType, ns, metadata.name, { uid: metadata.uid });
  }
}
