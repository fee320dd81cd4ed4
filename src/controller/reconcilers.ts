// All reconcilers of the controller, and the objects that some of them share.

import type { Reconciler } from './runtime/reconciler.ts';
import { appReconciler } from './apps/app.ts';
import { appEventsReconciler } from './apps/event-log.ts';
import { appNetworkReconciler } from './apps/network.ts';
import { buildWorkloadReconciler } from './builds/workload.ts';
import { buildReconciler } from './builds/build.ts';
import { builderInfoReconciler } from './builds/builder-info.ts';
import { gatewayCertificateReconciler } from './certificates/gateway-certificate.ts';
import { issuedCertificatesReconciler } from './certificates/issued.ts';
import { servedCertificatesReconciler } from './certificates/served.ts';
import { frozenSecretsReconciler } from './rollout/frozen-secrets.ts';
import { processReconciler } from './rollout/process.ts';
import { appWorkloadReconciler } from './rollout/workload.ts';
import { domainReconciler } from './routes/domain.ts';
import { claimsReconciler } from './routes/name-sweep.ts';
import { routeReconciler } from './routes/route.ts';
import { taskRetentionReconciler } from './tasks/retention.ts';
import { taskReconciler } from './tasks/task.ts';
import { taskWorkloadReconciler } from './tasks/workload.ts';
import { imagesReconciler } from './registry/image-cleanup.ts';
import { orgReconciler } from './tenancy/org.ts';
import { orgSharesReconciler, spaceShares } from './tenancy/limits.ts';
import { packageReconciler } from './builds/package.ts';
import { retentionReconciler } from './builds/retention.ts';
import { serviceBindingReconciler } from './services/binding.ts';
import { serviceInstanceReconciler } from './services/instance.ts';
import { registryKeys } from './registry/credentials.ts';
import { spaceReconciler } from './tenancy/space.ts';
import { usersReconciler } from './tenancy/users.ts';

export interface BuildSideOptions {
  /** Text of fetch.mjs, the program of the source container. */
  fetchProgram: string;
  /** Monotonic clock in milliseconds; quotas use it to wait until a space is quiet. */
  now?: () => number;
}

/** Those of tenancy, services, builds and certificates. */
export function buildSideReconcilers(options: BuildSideOptions): Reconciler[] {
  const keys = registryKeys();
  const shares = spaceShares(options.now);
  return [
    orgReconciler,
    spaceReconciler(keys, shares),
    usersReconciler,
    orgSharesReconciler(shares),
    claimsReconciler,
    serviceInstanceReconciler,
    serviceBindingReconciler,
    packageReconciler,
    buildReconciler,
    buildWorkloadReconciler({ keys, fetchProgram: options.fetchProgram }),
    builderInfoReconciler,
    retentionReconciler,
    gatewayCertificateReconciler,
    issuedCertificatesReconciler,
    servedCertificatesReconciler,
    imagesReconciler(keys),
  ];
}

/** All reconcilers of one controller. */
export function allReconcilers(options: BuildSideOptions): Reconciler[] {
  return [
    ...buildSideReconcilers(options),
    appReconciler,
    appEventsReconciler(),
    appNetworkReconciler,
    processReconciler(),
    appWorkloadReconciler,
    frozenSecretsReconciler(),
    routeReconciler,
    domainReconciler,
    taskReconciler,
    taskWorkloadReconciler,
    taskRetentionReconciler(),
  ];
}
