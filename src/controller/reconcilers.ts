// The reconcilers of tenancy, services, builds and certificates, and the objects that they share.

import type { Reconciler } from './runtime/reconciler.ts';
import { buildWorkloadReconciler } from './builds/workload.ts';
import { buildReconciler } from './builds/build.ts';
import { builderInfoReconciler } from './builds/builder-info.ts';
import { gatewayCertificateReconciler } from './certificates/gateway-certificate.ts';
import { issuedCertificatesReconciler } from './certificates/issued.ts';
import { servedCertificatesReconciler } from './certificates/served.ts';
import { claimsReconciler } from './routes/name-sweep.ts';
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
