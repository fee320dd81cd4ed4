// Where a field of kf's kinds accepts less than in an earlier release, with the reason. An object that was stored before stays valid as long as
// the field is not changed (ratcheting of Kubernetes since 1.30).

import type { Narrowing } from './fields.ts';

export const narrowings: readonly Narrowing[] = [
  {
    where: / (maxLength|maxItems|maxProperties)$/,
    until: '0.1.0',
    why: 'Texts and lists without a limit could make objects that no controller can list (decision 15).',
  },
  {
    where: / spec\.(instances|desiredInstances) maximum$/,
    until: '0.1.0',
    why: 'A process has at most 1,000 instances (decision 15).',
  },
  {
    where: /^cftasks\S+ spec\.appRef rule$/,
    until: '0.1.0',
    why: 'A task that changed its app would run with the rights of another one; kf never changes it.',
  },
  {
    where: /^cfprocesses\S+ spec\.appRef rule$/,
    until: 'before-deployments',
    why: 'A process that changed its app was removed while it served; kf never changes it.',
  },
  {
    where: /^cfprocesses\S+ spec\.(memoryMB|diskQuotaMB|\w+\.data\.\w+Seconds) minimum$/,
    until: 'before-deployments',
    why: 'No instance starts with a negative number.',
  },
  {
    where: /^cfprocesses\S+ spec\.user rule$/,
    until: 'before-deployments',
    why: "Only kf's own pods run as this user, which no distribution gives to anybody (decision 102).",
  },
  {
    where: /^cfdomains\S+ spec rule$/,
    until: 'before-deployments',
    why: 'The org of a domain is a field of its own since, and never changes (decision 79). Objects without it are not concerned.',
  },
  {
    where: /^cfroutes\S+ spec rule$/,
    until: 'before-deployments',
    why: 'Only about fields that are new: `sharedFrom` never changes (decision 83).',
  },
  {
    where: /^cfroutes\S+ (spec|status)\.destinations\S*\.port (minimum|maximum)$/,
    until: 'before-deployments',
    why: 'There is no such port, and a route that spaces share was refused as a whole because of it (decision 83).',
  },
  {
    where: /^\S+ required$/,
    until: 'before-deployments',
    why: 'Nothing can be done for an object without `spec`, and no kf ever made one (decision 99).',
  },
];
