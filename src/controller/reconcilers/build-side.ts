// The reconcilers of tenancy, services and builds, with what they share.

import type { Reconciler } from '../runtime/reconciler.ts';
import { buildWorkloadReconciler } from './build-workload.ts';
import { buildReconciler } from './build.ts';
import { builderInfoReconciler } from './builder-info.ts';
import { claimsReconciler } from './claims-sweep.ts';
import { imagesReconciler } from './images.ts';
import { orgReconciler } from './org.ts';
import { packageReconciler } from './package.ts';
import { retentionReconciler } from './retention.ts';
import { serviceBindingReconciler } from './service-binding.ts';
import { serviceInstanceReconciler } from './service-instance.ts';
import { registryKeys } from './space-secrets.ts';
import { spaceReconciler } from './space.ts';

export interface BuildSideOptions {
  /** Text of fetch.mjs, the program of the source lane. */
  fetchProgram: string;
}

export function buildSideReconcilers(options: BuildSideOptions): Reconciler[] {
  const keys = registryKeys();
  return [
    orgReconciler,
    spaceReconciler(keys),
    claimsReconciler,
    serviceInstanceReconciler,
    serviceBindingReconciler,
    packageReconciler,
    buildReconciler,
    buildWorkloadReconciler({ keys, fetchProgram: options.fetchProgram }),
    builderInfoReconciler,
    retentionReconciler,
    imagesReconciler(keys),
  ];
}
